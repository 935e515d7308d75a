package reconcile_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
)

// canary is a value that nobody may be told, with what has to be escaped in it.
const canary = "Zq7Kx9\"Vw3\nTbHj5Rd-canary"

var encodedCanary = base64.StdEncoding.EncodeToString([]byte(canary))

// forms are how the canary may be said, whole or cut off.
var forms = []string{"Zq7Kx9", "TbHj5Rd", encodedCanary[:12], encodedCanary[len(encodedCanary)-8:]}

// quoting is a cluster that refuses ConfigMaps, and quotes them in three ways.
type quoting struct {
	cluster.Cluster
	passing bool
}

func (q quoting) Apply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.GetKind() != "ConfigMap" {
		return q.Cluster.Apply(ctx, o)
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	value, _, _ := unstructured.NestedString(o.Object, "data", "k")
	if q.passing {
		return nil, fmt.Errorf("webhook: cannot take %s with %q", text, value)
	}
	problem := fmt.Sprintf("cannot take %s: %s", text, strings.Repeat("x", 700)+value+strings.Repeat("y", 900))
	return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, o.GetName(), field.ErrorList{field.Invalid(field.NewPath("data"), value, problem)})
}

// copier is a package that copies a secret wherever it can.
const copier = `
import "encoding/base64"

inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
_plain: "\(base64.Decode(null, inputs.tok.object.data.k))"
components: {
	own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", stringData: k: cr.spec.password}
	config: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "config", data: {k: _plain, e: inputs.tok.object.data.k}}
	after: {
		dependsOn: config: {}
		objects: o: {apiVersion: "v1", kind: "ServiceAccount", metadata: name: "after"}
	}
	wrong: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "wrong", data: k: _plain & "other"}
	gate: {
		when: strings: _plain =~ "^no$"
		objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "gate"}
	}
	asked: requires: k: live.own.secret.data.k == "x"
	asked: objects: o: {apiVersion: "v1", kind: "ServiceAccount", metadata: name: "asked"}
}
status: {
	plain:   _plain
	encoded: inputs.tok.object.data.k
	url:     "postgres://user:\(_plain)@host"
	mine:    cr.spec.password
	list: [{k: _plain}]
	bad: _plain + 1
}
`

func TestNothingThatLeavesAStepShowsASecret(t *testing.T) {
	t.Parallel()
	for name, passing := range map[string]bool{"refused for good": false, "refused for now": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, strings.Replace(copier, "when: strings: ", "when: ", 1))
			act(t, b.memory, map[string]any{"password": canary})
			annotate(t, b.memory, reconcile.AnnotationLogLevel, "debug")
			b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "tok"}, "data": map[string]any{"k": encodedCanary}})
			b.memory.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
			putPatch(t, b.memory, "quote", shopKey.Name, "config.o", map[string]any{"data": map[string]any{"more": "x"}})
			b.reconciler.Cluster, b.reconciler.Patches = quoting{b.memory, passing}, b.memory

			var said strings.Builder
			log := funcr.NewJSON(func(line string) { said.WriteString("log " + line + "\n") }, funcr.Options{Verbosity: 10})
			for range 8 {
				b.now = b.now.Add(5e9)
				if _, err := b.reconciler.Reconcile(logr.NewContext(t.Context(), log), shopKey, b.program); err != nil {
					said.WriteString("error " + err.Error() + "\n")
				}
			}
			for _, e := range b.events {
				said.WriteString("event " + e.Reason + " " + e.Message + "\n")
			}
			for _, u := range b.memory.Objects() {
				if text, err := json.Marshal(u.Object["status"]); err == nil {
					said.WriteString("status of " + u.GetName() + " " + string(text) + "\n")
				}
				said.WriteString("annotations of " + u.GetName() + " " + fmt.Sprint(u.GetAnnotations()) + "\n")
			}
			for line := range strings.SplitSeq(said.String(), "\n") {
				for _, form := range forms {
					if strings.Contains(line, form) {
						t.Errorf("it shows %s: %s", form, line)
					}
				}
			}
			for _, want := range []string{`"plain":"***"`, `"url":"postgres://user:***@host"`, "cannot take", "status of quote", `_plain =~ \"^no$\"`} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("it does not say %s", want)
				}
			}
		})
	}
}

func TestWhatIsRepeatedLaterWasRedactedInTime(t *testing.T) {
	t.Parallel()
	secret := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "tok"}, "stringData": map[string]any{"k": value}}
	}
	b := newBench(t, `
inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: inputs.tok.object.metadata.name}
`)
	b.put(secret("opensesame"))
	b.reconciler.Cluster = pods{b.reconciler.Cluster, func(context.Context, schema.GroupVersionKind, string, map[string]string, int64) ([]*unstructured.Unstructured, error) {
		return []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web-0", "namespace": "default"},
			"status": map[string]any{"phase": "Pending", "conditions": []any{
				map[string]any{"type": "PodScheduled", "status": "False", "reason": "opensesame"},
			}},
		}}}, nil
	}}
	says := func(after time.Duration) {
		t.Helper()
		b.now = b.now.Add(after)
		if _, err := b.step(); err != nil {
			t.Fatal(err)
		}
		if _, text := b.condition("Ready"); strings.Contains(text, "opensesame") {
			t.Errorf("it says %q", text)
		}
	}
	says(0)
	says(11 * time.Second)
	if _, text := b.condition("Ready"); !strings.Contains(text, "no node was found for it: ***") {
		t.Errorf("it says %q, want what the Pod waits for", text)
	}
	b.put(secret("another-one"))
	says(6 * time.Second)
}

func TestTheFaultOfAPackageShowsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", stringData: k: "opensesame"}`)
	b.reconciler.PackageFault = func() string { return `shop.cue:2: conflicting values "opensesame" and 3` }
	b.rest()
	if _, text := b.condition("PackageBroken"); !strings.Contains(text, `conflicting values "***" and 3`) {
		t.Errorf("it says %q", text)
	}
}

func TestANameThatIsMadeOfASecretDoesNotMakeItPublic(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
inputs: s: {apiVersion: "v1", kind: "Secret", name: "s"}
_value: inputs.s.object.stringData.k
components: strange: objects: o: {apiVersion: "v1", kind: "K\(_value)", metadata: name: "x"}
components: named: objects: o: {apiVersion: "v1", kind: "Unknown", metadata: name: "x-\(_value)"}
status: text: "it is \(_value)"
`)
	b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "s"}, "stringData": map[string]any{"k": "opensesame"}})
	for range 3 {
		_, _ = b.step()
		b.now = b.now.Add(5 * time.Second)
	}
	text, err := json.Marshal(b.status())
	if err != nil {
		t.Fatal(err)
	}
	if said := string(text); strings.Contains(said, "opensesame") || !strings.Contains(said, "does not serve v1 K***") || !strings.Contains(said, "it is ***") {
		t.Errorf("it says %s", said)
	}
}

// A webhook may quote the object that it does not let go.
func TestARefusalToDeleteAnObjectShowsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
import "encoding/base64"

inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
components: config: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name, data: k: "\(base64.Decode(null, inputs.tok.object.data.k))"}
`)
	b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "tok"}, "data": map[string]any{"k": "b3BlbnNlc2FtZQ=="}})
	b.rest()
	b.memory.SetAdmission(func(before, after *unstructured.Unstructured) error {
		if after == nil && before.GetName() == "shop" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "shop", errors.New("somebody uses opensesame"))
		}
		return nil
	})
	act(t, b.memory, map[string]any{"name": "store"})
	for range 3 {
		if _, err := b.step(); err == nil || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("the error is %v", err)
		}
		b.now = b.now.Add(5 * time.Second)
	}
	b.expect("the old object stays", "False DeleteFailed", "somebody uses ***")
	if text := fmt.Sprint(b.status(), b.events); strings.Contains(text, "opensesame") {
		t.Errorf("it says %s", text)
	}
}

// Everybody may see the name of a component. Without it, nobody knows what an event is about.
func TestTheNameOfAComponentThatHasLeftThePackageIsNoSecret(t *testing.T) {
	t.Parallel()
	const body = `
inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "base", data: k: inputs.tok.object.stringData.k}
`
	b := newBench(t, body+`components: frontend: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}`)
	b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "tok"}, "stringData": map[string]any{"k": "frontend"}})
	b.rest()
	b.events = nil
	b.load(body)
	b.rest()
	b.expectEvents("the component is gone", "Deleted: Deleted ConfigMap default/web of component frontend")
}
