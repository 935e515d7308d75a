package reconcile_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	"operetta.dev/test/machine"
)

// pinned is a package whose digests rest on a PIN in every way there is: an own Secret, an
// object and a Job that copy an input, and a hook with a Secret of its own.
const pinned = `
inputs: pin: {apiVersion: "v1", kind: "Secret", name: "pin"}
components: own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", data: k: inputs.pin.object.data.k}
components: copy: objects: {
	settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "copy", data: k: inputs.pin.object.data.k}
	job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "copy", spec: template: metadata: annotations: k: inputs.pin.object.data.k}
}
components: mirror: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "mirror", data: k: live.own.secret.data.k}
components: plain: objects: {
	settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "plain", data: size: "\(cr.spec.size)"}
	checksum: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "checksum", data: {
		own: live.own.secret.metadata.annotations["operetta.dev/digest"]
		pin: inputs.pin.object.metadata.annotations["operetta.dev/digest"]
	}}
}
hooks: afterDeploy: {
	secret: objects: {
		secret: {apiVersion: "v1", kind: "Secret", metadata: name: "hook", data: k: inputs.pin.object.data.k}
		job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "hook", spec: template: metadata: name: "x"}
	}
	copy: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "copied", spec: template: metadata: annotations: k: inputs.pin.object.data.k}
	plain: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "plain", spec: completions: cr.spec.size}
}
`

func encode(pin string) string { return base64.StdEncoding.EncodeToString([]byte(pin)) }

func pinSecret(pin string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "pin"}, "data": map[string]any{"k": encode(pin)}}
}

// hexadecimal finds what may be a digest, or a part of one.
var hexadecimal = regexp.MustCompile(`[0-9a-f]{8,}`)

// visible returns what may be a digest among what those see who may read the resource and
// everything else but Secrets, with all of their metadata but what the API server sets.
func (b *bench) visible() map[string]bool {
	var said strings.Builder
	for _, u := range b.memory.Objects() {
		if u.GetKind() == "Secret" {
			fmt.Fprintln(&said, u.GetName())
			continue
		}
		u.SetManagedFields(nil)
		u.SetUID("")
		text, _ := json.Marshal(u.Object)
		said.Write(text)
	}
	for _, e := range b.events {
		fmt.Fprintln(&said, e.Message)
	}
	out := map[string]bool{}
	for _, digits := range hexadecimal.FindAllString(said.String(), -1) {
		out[digits] = true
	}
	return out
}

// digestible returns what digests may be made of: the objects on the cluster and parts of
// them, and the hooks as the package renders them. Whoever knows the package knows all of
// it but the secret value.
func (b *bench) digestible(value string) []string {
	var out []string
	add := func(v any) {
		text, _ := json.Marshal(v)
		out = append(out, string(text))
	}
	for _, u := range b.memory.Objects() {
		text, _ := json.Marshal(u.Object)
		if u.GetKind() == "Shop" || u.GetName() == "pin" || !strings.Contains(string(text), value) {
			continue
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		for _, mark := range []string{"operetta.dev/applied", "operetta.dev/salt"} {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", mark)
		}
		delete(u.Object, "status")
		add(u.Object)
		add(map[string]any{"kind": u.GetKind(), "spec": u.Object["spec"]})
		add(u.Object["data"])
	}
	object := func(version, kind, name, field string, content any) any {
		return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}, field: content}
	}
	template := func(meta map[string]any) any {
		return map[string]any{"template": map[string]any{"metadata": meta}}
	}
	copied := object("batch/v1", "Job", "copied", "spec", template(map[string]any{"annotations": map[string]any{"k": value}}))
	secret := object("v1", "Secret", "hook", "data", map[string]any{"k": value})
	beside := object("batch/v1", "Job", "hook", "spec", template(map[string]any{"name": "x"}))
	add(map[string]any{"objects": []any{copied}})
	add(map[string]any{"objects": []any{secret, beside}})
	add(value)
	return append(out, value)
}

// guessed returns the PINs of four digits that what is visible confirms, all being tried.
func (b *bench) guessed(pin string) []string {
	var out []string
	visible := b.visible()
	texts := b.digestible(encode(pin))
	for n := range 10_000 {
		guess := fmt.Sprintf("%04d", n)
		for i, text := range append(texts, guess) {
			sum := sha256.Sum256([]byte(strings.ReplaceAll(text, encode(pin), encode(guess))))
			digest := hex.EncodeToString(sum[:])
			if visible[digest[:8]] || visible[digest[:16]] || visible[digest] {
				out = append(out, fmt.Sprintf("%s by text %d", guess, i))
			}
		}
	}
	return out
}

// pinnedBench is a bench with the package and the PIN, at rest, with its Jobs complete.
func pinnedBench(t *testing.T, pin string) *bench {
	t.Helper()
	b := newBench(t, pinned)
	b.put(pinSecret(pin))
	b.settle()
	return b
}

// settle lets all Jobs complete.
func (b *bench) settle() {
	b.t.Helper()
	b.rest()
	completeJobs(b.t, b.memory)
	b.rest()
	completeJobs(b.t, b.memory)
	b.rest()
}

func TestAttackNoDigestTellsWhatASecretHolds(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := pinnedBench(t, "4711")
	if got, why := b.condition("Ready"); got != "True Ready" {
		t.Fatalf("Ready is %s: %s", got, why)
	}
	for _, by := range b.guessed("4711") {
		t.Errorf("the PIN is found: %s", by)
	}
}

// unkeyed is a package as before there were keys.
type unkeyed struct{ *program.Program }

// Evaluate implements rollout.Evaluator.
func (u unkeyed) Evaluate(s program.Session) (program.Rollout, error) {
	out, err := u.Program.Evaluate(s)
	for _, c := range out.Components {
		for i := range c.Objects {
			c.Objects[i].Secrets = nil
		}
	}
	for _, h := range out.Hooks {
		for i := range h.Component.Objects {
			h.Component.Objects[i].Secrets = nil
		}
	}
	return out, err
}

// before is a bench as a version of before there were keys left it.
func before(t *testing.T, pin string) *bench {
	t.Helper()
	b := newBench(t, pinned)
	b.put(pinSecret(pin))
	b.reconciler.NewSalt = func() string { return "" }
	for range 8 {
		b.now = b.now.Add(5 * time.Second)
		if _, err := b.reconciler.Reconcile(t.Context(), shopKey, unkeyed{b.program}); err != nil {
			t.Fatal(err)
		}
		completeJobs(t, b.memory)
	}
	b.restart()
	return b
}

func TestTheAttackFindsThePINOfBeforeThereWereKeys(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := before(t, "4711")
	found := strings.Join(b.guessed("4711"), "\n")
	for _, text := range []string{"4711 by"} {
		if !strings.Contains(found, text) {
			t.Errorf("the attack does not find it: %q", found)
		}
	}
}

// changes returns what is written from here on until it rests, but for the status.
func (b *bench) changes(act func()) []string {
	b.t.Helper()
	from := len(b.memory.Changes())
	act()
	var out []string
	for _, c := range b.memory.Changes()[from:] {
		if c.Ref.Kind != "Shop" {
			out = append(out, string(c.Operation)+" "+c.Ref.Kind+" "+strings.TrimRight(c.Ref.Name, "0123456789abcdef"))
		}
	}
	slices.Sort(out)
	return out
}

func TestWhatWasWrittenBeforeThereWereKeysIsTakenOver(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := before(t, "4711")
	got := b.changes(b.settle)
	want := []string{
		// The content of Secrets, and what rests on it, has digests with keys now, and what
		// a hook left behind under another name goes. No hook and no Job runs again. A hook
		// with a Secret of its own has no other place for a key, and keeps its names.
		"delete Job copied-",
		"update ConfigMap checksum", "update ConfigMap copy", "update ConfigMap mirror", "update Job copy", "update Secret own",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := b.changes(b.settle); len(got) > 0 {
		t.Errorf("it does not rest: %v", got)
	}
	secret := b.find("Secret", "pin")
	secret.Object["data"] = pinSecret("1234")["data"]
	b.put(secret.Object)
	b.settle()
	b.events = nil // those about the old objects end by themselves
	for _, by := range b.guessed("1234") {
		t.Errorf("the PIN is found: %s", by)
	}
}

func TestSaltsAreKept(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	salt := func(b *bench) string { return b.find("Secret", "own").GetAnnotations()["operetta.dev/salt"] }
	mark := func(b *bench, change func(map[string]string)) {
		u := b.find("Secret", "own")
		annotations := u.GetAnnotations()
		change(annotations)
		u.SetAnnotations(annotations)
		b.put(u.Object)
	}
	set := func(value string) func(map[string]string) {
		return func(all map[string]string) { all["operetta.dev/salt"] = value }
	}
	strip := func(all map[string]string) { delete(all, "operetta.dev/salt") }
	const mine = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		reason  string
		act     func(b *bench)
		writes  []string
		another bool
	}{
		"at rest":                            {"nothing changes", func(*bench) {}, nil, false},
		"a restart":                          {"it is read from the Secret", (*bench).restart, nil, false},
		"it is stripped":                     {"it is remembered", func(b *bench) { mark(b, strip) }, []string{"update Secret own", "update Secret own"}, false},
		"it is changed":                      {"who knows it could guess", func(b *bench) { mark(b, set(mine)) }, []string{"update Secret own", "update Secret own"}, false},
		"it is stripped between two lives":   {"nobody knows it any more", func(b *bench) { mark(b, strip); b.restart() }, []string{"update ConfigMap checksum", "update ConfigMap mirror", "update Secret own", "update Secret own"}, true},
		"it is changed between two lives":    {"it is not the engine's", func(b *bench) { mark(b, set(mine)); b.restart() }, []string{"update ConfigMap checksum", "update ConfigMap mirror", "update Secret own", "update Secret own"}, true},
		"the Secret is deleted":              {"it is made anew as it was", func(b *bench) { b.remove("Secret", "own") }, []string{"create Secret own", "delete Secret own"}, false},
		"the Secret is deleted between them": {"nobody knows it any more", func(b *bench) { b.remove("Secret", "own"); b.restart() }, []string{"create Secret own", "delete Secret own", "update ConfigMap checksum", "update ConfigMap mirror"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pinnedBench(t, "4711")
			was := salt(b)
			if got := b.changes(func() { c.act(b); b.settle() }); !slices.Equal(got, c.writes) {
				t.Errorf("%s: writes %q, want %q", c.reason, got, c.writes)
			}
			if now := salt(b); len(now) != len(mine) || now == mine || (now != was) != c.another {
				t.Errorf("%s: the salt was %s and is %s", c.reason, was, now)
			}
			if got := b.changes(b.settle); len(got) > 0 {
				t.Errorf("it does not rest: %v", got)
			}
		})
	}
}

func TestAHookThatRestsOnASecretRunsOncePerChange(t *testing.T) {
	t.Parallel()
	b := pinnedBench(t, "4711")
	for _, u := range objects(t, b.memory, "Job") {
		b.remove("Job", u.GetName()) // as after their time
	}
	b.restart()
	if got := b.changes(b.settle); len(got) > 0 {
		t.Errorf("after a restart: %v, and everything had run", got)
	}
	secret := b.find("Secret", "pin")
	secret.Object["data"] = pinSecret("1234")["data"]
	got := b.changes(func() { b.put(secret.Object); b.settle() })
	for _, want := range []string{"create Job copied-", "create Job hook-", "create Secret hook-", "update Secret own", "update Secret pin", "update ConfigMap checksum"} {
		if !slices.Contains(got, want) {
			t.Errorf("after a change: %v, want %s", got, want)
		}
	}
	if slices.Contains(got, "create Job plain-") {
		t.Errorf("after a change: %v, a hook ran that does not rest on it", got)
	}
	if got := b.changes(b.settle); len(got) > 0 {
		t.Errorf("it does not rest: %v", got)
	}
}

func TestARejectedSecretIsOfferedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, pinned)
	b.put(pinSecret("4711"))
	refused := 0
	b.memory.SetAdmission(func(_, after *unstructured.Unstructured) error {
		if after == nil || after.GetName() != "own" {
			return nil
		}
		refused++
		return apierrors.NewBadRequest("no")
	})
	for range 10 {
		b.now = b.now.Add(5 * time.Second)
		_, _ = b.step()
	}
	if refused != 1 {
		t.Errorf("it was offered %d times", refused)
	}
}
