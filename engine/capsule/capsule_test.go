package capsule_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// shop is a package that puts what it makes of a Secret into a ConfigMap, and then creates a Deployment.
const shop = `package shop

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
inputs: secret: {apiVersion: "v1", kind: "Secret", name: cr.spec.secret}
#Spec: {secret: string | *"login", replicas: int | *1}
let given = base64.Decode(null, inputs.secret.object.data.password)
components: {
	config: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: {
		digest: hex.Encode(sha256.Sum256(given))
	}}
	own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: password: "opensesame"}
	web: {
		objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: cr.metadata.name, spec: {
			replicas: cr.spec.replicas
			selector: matchLabels: app: cr.metadata.name
			template: {metadata: labels: app: cr.metadata.name, spec: containers: [{name: "web", image: "nginx"}]}
		}}
	}
}
`

// password is what no capsule has.
const password = "open sesame, please"

// An unrecorded recorder records no events.
type unrecorded struct{}

func (unrecorded) Record(*unstructured.Unstructured, rollout.Event) {}

// An operator in memory whose reconciles are recorded.
type operator struct {
	*memory.Cluster

	program    *program.Program
	capsules   *capsule.Recorder
	reconciler *reconcile.Reconciler
	dir        string
}

// newOperator returns an operator with a Shop and its Secret.
func newOperator(t *testing.T, o capsule.Options) *operator {
	t.Helper()
	return newOperatorIn(t, t.TempDir(), o)
}

// newOperatorIn is newOperator with a folder for the capsules.
func newOperatorIn(t *testing.T, dir string, o capsule.Options) *operator {
	t.Helper()
	o.Dir, o.Log = dir, logr.Discard()
	if o.Decisions == 0 {
		o.Decisions = 20
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	r, err := capsule.NewRecorder(o)
	if err != nil {
		t.Fatal(err)
	}
	p := inline.Program(t, shop)
	m := memory.New()
	m.Serve(p.GroupVersionKind().GroupKind(), cluster.Namespaced)
	on := r.Cluster(m)
	out := &operator{m, p, r, &reconcile.Reconciler{Kind: p.GroupVersionKind(), Resources: on, Cluster: on, Patches: on, Recorder: unrecorded{}, Now: time.Now, Parallel: 1}, o.Dir}
	out.put(t, `{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: town}, data: {password: b3BlbiBzZXNhbWUsIHBsZWFzZQ==}}`)
	go func() { _ = r.Start(t.Context()) }()
	return out
}

// put writes an object as a person does.
func (o *operator) put(t *testing.T, text string) {
	t.Helper()
	if _, err := o.Put("person", inline.Object(t, text)); err != nil {
		t.Fatal(err)
	}
}

// evaluating is a package that notes that it is evaluated, as that of a controller does.
type evaluating struct {
	*program.Program

	ctx context.Context //nolint:containedctx // one reconcile has it, and rollout.Evaluator takes none
}

func (e evaluating) Evaluate(s program.Session) (program.Rollout, error) {
	capsule.Evaluated(e.ctx)
	return e.Program.Evaluate(s)
}

// reconcile reconciles a Shop once.
func (o *operator) reconcile(t *testing.T, name string) {
	t.Helper()
	key := types.NamespacedName{Namespace: "town", Name: name}
	ctx, reading := o.capsules.Begin(t.Context())
	_, err := o.reconciler.Reconcile(ctx, key, evaluating{o.program, ctx})
	o.capsules.End(reading, capsule.Step{Kind: o.reconciler.Kind, Key: key, Err: err, Version: func(context.Context) plan.Version { return plan.Version{Program: o.program} }})
	if err != nil {
		t.Fatal(err)
	}
}

// files waits for so many capsules of a Shop, and returns them in order.
func (o *operator) files(t *testing.T, name string, n int) []string {
	t.Helper()
	var out []string
	machine.Eventually(t, "capsules", func() bool {
		out, _ = filepath.Glob(filepath.Join(o.dir, "shop.shop.example", "town", name, "*.capsule.json"))
		return len(out) == n
	})
	return out
}

const corner = `{apiVersion: shop.example/v1, kind: Shop, metadata: {name: corner, namespace: town}, spec: {}}`

// replay decides a capsule again.
func replay(t *testing.T, c *capsule.Capsule, p *program.Program) (capsule.Decision, []string) {
	t.Helper()
	out, notes, err := c.Decide(t.Context(), plan.Version{Program: p})
	if err != nil {
		t.Fatal(err)
	}
	return out, notes
}

func TestADecisionIsMadeAgainByteForByteWithoutTheSecret(t *testing.T) {
	t.Parallel()
	o := newOperator(t, capsule.Options{})
	o.put(t, corner)
	o.reconcile(t, "corner")
	file := o.files(t, "corner", 1)[0]
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := capsule.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, a := range c.Did {
		did = append(did, a.String())
	}
	want := []string{"write the status of Shop town/corner", "apply ConfigMap town/corner", "apply Secret town/corner", "apply Deployment town/corner"}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("what it did (-want +got):\n%s", diff)
	}
	for range 3 {
		again, notes := replay(t, c, inline.Program(t, shop))
		if !again.Equal(c.Decision) {
			t.Errorf("it decides otherwise: %v", capsule.Compare(c.Decision, again))
		}
		if len(notes) > 0 {
			t.Errorf("the capsule lacks %q", notes)
		}
	}
	var created []string
	for _, w := range c.Decision.Writes {
		created = append(created, string(w.Verb)+" "+w.Object)
	}
	if diff := cmp.Diff([]string{"create ConfigMap town/corner", "create Secret town/corner", "create Deployment town/corner"}, created); diff != "" {
		t.Errorf("the decision (-want +got):\n%s", diff)
	}
	o.reconcile(t, "corner")
	for _, file := range o.files(t, "corner", 2) {
		expectNoSecret(t, file, password, "b3BlbiBzZXNhbWUsIHBsZWFzZQ", "opensesame", "b3BlbnNlc2FtZQ")
	}
	expectNoWriteOfASecret(t, o.files(t, "corner", 2)[1])
	u, err := o.GetLive(t.Context(), cluster.RefOf(inline.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: corner, namespace: town}}`)))
	if err != nil || u == nil {
		t.Fatal(err)
	}
	digest, _, _ := unstructured.NestedString(u.Object, "data", "digest")
	if digest == "" || strings.Contains(string(text), digest) {
		t.Errorf("the capsule has the digest %q of the password", digest)
	}
}

// expectNoSecret errors if the file of a capsule, or a dump in it, has one of the texts.
func expectNoSecret(t *testing.T, file string, texts ...string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range texts {
		if strings.Contains(string(data), secret) {
			t.Errorf("the capsule has %q", secret)
		}
	}
}

// expectNoWriteOfASecret errors if the decision of a capsule writes a Secret, or is another one when it is made again.
func expectNoWriteOfASecret(t *testing.T, file string) {
	t.Helper()
	c, err := capsule.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Decision.Writes {
		if strings.Contains(w.Object, "Secret") {
			t.Errorf("it would %s %s again", w.Verb, w.Object)
		}
	}
	if again, _ := replay(t, c, inline.Program(t, shop)); !again.Equal(c.Decision) {
		t.Errorf("it decides otherwise: %v", capsule.Compare(c.Decision, again))
	}
}

func TestAnotherPackageDecidesOtherwise(t *testing.T) {
	t.Parallel()
	o := newOperator(t, capsule.Options{})
	o.put(t, corner)
	o.reconcile(t, "corner")
	c, err := capsule.Read(o.files(t, "corner", 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason   string
		old, new string
		want     []string
		notes    []string
	}{
		"Field":   {"a field is another one", `image: "nginx"`, `image: "nginx:2"`, []string{"create Deployment town/corner, with other fields\n  spec.template.spec.containers[name=web].image: \"nginx\" -> \"nginx:2\"\n"}, nil},
		"Missing": {"it reads what was not read", `name: cr.spec.secret}`, `name: "other"}`, nil, []string{"the capsule does not say whether Secret town/other exists, so replay takes it as absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, notes := replay(t, c, inline.Program(t, strings.Replace(shop, tc.old, tc.new, 1)))
			var texts []string
			for _, d := range capsule.Compare(c.Decision, got) {
				if d.Object != "status" {
					texts = append(texts, d.Text())
				}
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, texts); diff != "" && tc.want != nil {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.Equal(c.Decision) {
				t.Errorf("%s: it decides the same", tc.reason)
			}
		})
	}
	if _, _, err := c.Decide(t.Context(), plan.Version{Program: inline.Program(t, strings.Replace(shop, `"Shop"`, `"Other"`, 1))}); err == nil {
		t.Error("a package for another kind decides")
	}
}

func TestWhatIsRecordedIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		options capsule.Options
		// shops are reconciled in order, each after a change; kept is how many capsules there are of each.
		shops       []string
		annotations string
		kept        map[string]int
	}{
		"PerResource": {"each resource has its last ones", capsule.Options{Decisions: 2}, []string{"a", "a", "a", "b"}, "", map[string]int{"a": 2, "b": 1}},
		"AllInAll":    {"the oldest make room, and the last one stays", capsule.Options{Bytes: 1}, []string{"a", "b", "c"}, "", map[string]int{"a": 0, "b": 0, "c": 1}},
		"Annotated":   {"only those that ask", capsule.Options{Annotated: true}, []string{"a"}, `annotations: {operetta.dev/record: "true"}, `, map[string]int{"a": 1}},
		"Unannotated": {"others are not recorded", capsule.Options{Annotated: true, Decisions: 3}, []string{"a"}, "", map[string]int{"a": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOperator(t, tc.options)
			for i, s := range tc.shops {
				o.put(t, `{apiVersion: shop.example/v1, kind: Shop, metadata: {name: `+s+`, namespace: town, `+tc.annotations+`generation: `+string(rune('1'+i))+`}, spec: {replicas: `+string(rune('1'+i))+`}}`)
				o.reconcile(t, s)
			}
			o.put(t, `{apiVersion: shop.example/v1, kind: Shop, metadata: {name: last, namespace: town, annotations: {operetta.dev/record: "true"}}, spec: {}}`)
			if tc.options.Bytes == 0 {
				o.reconcile(t, "last")
				o.files(t, "last", 1) // capsules are written in order
			}
			for s, n := range tc.kept {
				o.files(t, s, n)
			}
			machine.Eventually(t, "no half-written file", func() bool {
				left := 0
				_ = filepath.WalkDir(o.dir, func(path string, _ fs.DirEntry, err error) error {
					if strings.HasSuffix(path, ".tmp") {
						left++
					}
					return err
				})
				return left == 0
			})
		})
	}
}

func TestAReconcileThatDecidesNothingIsNotRecorded(t *testing.T) {
	t.Parallel()
	o := newOperator(t, capsule.Options{})
	o.reconcile(t, "gone")
	o.put(t, corner)
	o.reconcile(t, "corner")
	o.files(t, "corner", 1)
	o.files(t, "gone", 0)
}

func TestABrokenCapsuleIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Text":     {"it is something else", "hello", "it is not JSON of a capsule"},
		"Format":   {"a later version has written it", `{"format":2}`, "it has format 2, and this version reads 1"},
		"Resource": {"it is about nothing", `{"format":1,"digest":"sha256:x"}`, "it names no resource"},
		"Digest":   {"nobody knows who has decided", `{"format":1,"resource":{"group":"a.b","version":"v1","kind":"K","name":"n"}}`, "it names no version of a package"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := capsule.Decode(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	text, _ := json.Marshal(map[string]any{"format": 1, "digest": "sha256:x", "resource": map[string]any{"group": "shop.example", "version": "v1", "kind": "Shop", "name": "n"}, "objects": []byte("no dump")})
	c, err := capsule.Decode(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Decide(t.Context(), plan.Version{Program: inline.Program(t, shop)}); err == nil {
		t.Error("a capsule without objects decides")
	}
}

// FuzzDecode looks for files that panic when they are decided again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":1,"digest":"sha256:x","resource":{"group":"shop.example","version":"v1","kind":"Shop","name":"n"},"objects":"aGVsbG8="}`))
	p := inline.Program(f, shop)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := capsule.Decode(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		_, _, _ = c.Decide(t.Context(), plan.Version{Program: p})
	})
}

func TestAPackageThatComputesWithASecretSeesAnotherOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, old, new string
		writes           []string
		explained        bool
	}{
		"Computed": {"the digest of what stands for the password is another one than that in the cluster", "", "", []string{"update ConfigMap town/corner"}, false},
		"Copied":   {"what stands for the password is the same in both places", "digest: hex.Encode(sha256.Sum256(given))", `digest: hex.Encode(sha256.Sum256("\(len(given) > 3)"))`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOperator(t, capsule.Options{})
			o.program = inline.Program(t, strings.Replace(shop, tc.old, tc.new, 1))
			o.put(t, corner)
			o.reconcile(t, "corner")
			o.files(t, "corner", 1)
			o.edit(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: corner, namespace: town}}`, func(u *unstructured.Unstructured) {
				u.Object["status"] = inline.Object(t, `{observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}`).Object
			})
			o.reconcile(t, "corner")
			c, err := capsule.Read(o.files(t, "corner", 2)[1])
			if err != nil {
				t.Fatal(err)
			}
			var writes []string
			for _, w := range c.Decision.Writes {
				writes = append(writes, string(w.Verb)+" "+w.Object)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" || c.Explains() != tc.explained {
				t.Errorf("%s: explained: %t, writes (-want +got):\n%s", tc.reason, c.Explains(), diff)
			}
			if c.Decision.Status["phase"] != "Ready" {
				t.Errorf("%s: the phase is %v", tc.reason, c.Decision.Status["phase"])
			}
		})
	}
}

// edit changes an object as a controller of Kubernetes does.
func (o *operator) edit(t *testing.T, which string, change func(*unstructured.Unstructured)) {
	t.Helper()
	u, err := o.GetLive(t.Context(), cluster.RefOf(inline.Object(t, which)))
	if err != nil || u == nil {
		t.Fatal(u, err)
	}
	u = u.DeepCopy()
	change(u)
	if _, err := o.Put("controller", u); err != nil {
		t.Fatal(err)
	}
}
