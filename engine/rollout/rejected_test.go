package rollout_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// noBad rejects ConfigMaps whose data has a key "bad".
func noBad(_, after *unstructured.Unstructured) error {
	if after == nil {
		return nil
	}
	if _, bad, _ := unstructured.NestedFieldNoCopy(after.Object, "data", "bad"); !bad {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("data", "bad"), strings.Repeat("x", 3000), "is bad"),
	})
}

func TestTwoObjectsOfOneIdentityFailBothOfTheirComponents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, body string
		states       []string
		writes       []string
		says         []string // of the first component
	}{
		"of two components": {
			reason: "each would overwrite the other forever",
			body: `components: a: objects: x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}
components: b: objects: y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "shop"}
components: c: objects: z: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}`,
			states: []string{"a: Failed DuplicateObject", "b: Failed DuplicateObject", "c: Verified Verified"},
			writes: []string{"create ConfigMap other"},
			says:   []string{"components.a.objects.x (shop/body.cue:2)", "components.b.objects.y (shop/body.cue:3)", "ConfigMap", "/shop", "another name"},
		},
		"of one component": {
			reason: "they are no less the same",
			body:   `components: a: objects: {for k in ["a_b", "a-b"] {(k): {apiVersion: "v1", kind: "ConfigMap", metadata: name: "same", data: of: k}}}`,
			states: []string{"a: Failed DuplicateObject"},
			says:   []string{"components.a.objects.a_b", "components.a.objects.a-b"},
		},
		"one of them should not exist": {
			reason: "there is only one then",
			body: `components: a: {when: cr.spec.on, objects: x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "shop"}}
components: b: {when: !cr.spec.on, objects: y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "shop"}}`,
			states: []string{"a: Verified Verified", "b: Excluded Excluded"},
			writes: []string{"create ConfigMap shop"},
		},
		"which shows after the first is written": {
			reason: "the name comes from a live object",
			body: `components: a: objects: x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "shop", data: next: "shop"}
components: b: objects: y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: live.a.x.data.next}`,
			states: []string{"a: Failed DuplicateObject", "b: Failed DuplicateObject"},
			writes: []string{"create ConfigMap shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			result := w.mustRun()
			expectStates(t, result, row.states...)
			w.expectWrites(row.reason, row.writes...)
			for _, want := range row.says {
				if text := message(result, "a"); !strings.Contains(text, want) {
					t.Errorf("%s: a says %q, which lacks %q", row.reason, text, want)
				}
			}
			expectStates(t, w.mustRun(), row.states...)
			w.expectWrites("a second look finds the same")
		})
	}
}

func TestWhatOthersLiveInIsWrittenFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	if cr.spec.on {content: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "content"}}
	hook: {apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration", metadata: name: "\(cr.metadata.namespace)-hook", webhooks: []}
	later: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "later"}
	space: {apiVersion: "v1", kind: "Namespace", metadata: name: "\(cr.metadata.namespace)-space"}
}
reach: {Namespace: {}, "ValidatingWebhookConfiguration.admissionregistration.k8s.io": {}}`)
	order := &applied{Cluster: w.cluster}
	w.cluster = order
	w.mustRun()
	kinds := order.kinds
	if diff := cmp.Diff([]string{"Namespace", "ConfigMap", "ConfigMap", "ValidatingWebhookConfiguration"}, kinds); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// applied notes the kinds of what is applied, in order.
type applied struct {
	cluster.Cluster
	mu    sync.Mutex
	kinds []string
}

// Apply implements cluster.Cluster.
func (a *applied) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	a.mu.Lock()
	a.kinds = append(a.kinds, u.GetKind())
	a.mu.Unlock()
	return a.Cluster.Apply(ctx, u)
}

func TestARejectedObjectKeepsNoOtherNewOneFromBeingWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one", data: {
		bad: "yes"
	}}
	two: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "two"}
}`)
	w.site.Refuse(noBad)
	result := w.mustRun()
	expectStates(t, result, "a: Failed ObjectRejected")
	w.expectWrites("the second is right", "create ConfigMap two")
	text := message(result, "a")
	if !strings.Contains(text, "data.bad: ") || !strings.Contains(text, "is bad (shop/body.cue:4)") || len(text) > 400 {
		t.Errorf("the message is %q, want the field, the line that writes it, and no 3 KB of its value", text)
	}
}

func TestAComponentIsChangedAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one", data: size: "\(cr.spec.size)"}
	two: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "two", data: size: "\(cr.spec.size)"}
}
components: b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: size: "\(cr.spec.size)"}`)
	w.mustRun()
	w.wrote()
	w.site.Refuse(func(before, after *unstructured.Unstructured) error {
		if before != nil && after != nil && after.GetName() == "two" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "two", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
		}
		return nil
	})
	w.spec["size"] = int64(2)
	result := w.mustRun()
	expectStates(t, result, "a: Failed ObjectRejected", "b: Verified Verified")
	w.expectWrites("the first would be changed without the second", "update ConfigMap b")
	if text := message(result, "a"); !strings.Contains(text, "recreateOnImmutable") {
		t.Errorf("the message is %q, want what to do about a change that is not allowed", text)
	}
}

func TestAFieldThatAKindDoesNotHaveIsRejectedWithItsLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: d: _deployment & {
	metadata: name: "web"
	spec: replica: 3
	spec: template: spec: containers: [{
		name: "main"
		readynessProbe: {}
	}]
}`)
	result := w.mustRun()
	expectStates(t, result, "a: Failed ObjectRejected")
	text := message(result, "a")
	for _, want := range []string{"spec.replica", "(shop/body.cue:4)", `spec.template.spec.containers[name="main"].readynessProbe`, "(shop/body.cue:7)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the message is %q, which lacks %q", text, want)
		}
	}
	w.expectWrites("nothing of it is right")
}

func TestObjectsOfAKindWaitForItsDefinitionInTheirOwnComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	one: {apiVersion: "gadgets.example.com/v1", kind: "Gadget", metadata: name: "one"}
	definition: {apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: name: "gadgets.gadgets.example.com"
		spec: {group: "gadgets.example.com", scope: "Namespaced", names: {kind: "Gadget", plural: "gadgets"}, versions: [{
			name: "v1", served: true, storage: true, schema: openAPIV3Schema: {type: "object", "x-kubernetes-preserve-unknown-fields": true}
		}]}
	}
}
reach: "CustomResourceDefinition.apiextensions.k8s.io": {}`)
	result := w.mustRun()
	expectStates(t, result, "a: Waiting KindNotServed")
	if result.RequeueAfter == 0 {
		t.Error("nothing makes the rollout come again")
	}
	if n := w.inventory.Len(); n != 1 {
		t.Errorf("the inventory has %d objects, want the definition alone: %v; %s", n, w.inventory, message(result, "a"))
	}
}

func TestOfVeryManyWrongFieldsTheFirstAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one"}`)
	w.site.Refuse(func(_, after *unstructured.Unstructured) error {
		if after == nil {
			return nil
		}
		var all field.ErrorList
		for i := range 5_000 {
			all = append(all, field.Required(field.NewPath("data", "key").Index(i), ""))
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), all)
	})
	result := w.mustRun()
	expectStates(t, result, "a: Failed ObjectRejected")
	text := message(result, "a")
	if !strings.Contains(text, "data.key[9]: ") || strings.Contains(text, "data.key[10]: ") || !strings.HasSuffix(text, "; and 4990 more") {
		t.Errorf("the message is %.1000q, want ten fields, and how many more there are", text)
	}
}

// unlocated is a package that cannot tell where it writes a field.
type unlocated struct{ all *program.Program }

// Evaluate implements rollout.Evaluator.
func (u unlocated) Evaluate(s program.Session) (program.Rollout, error) { return u.all.Evaluate(s) }

func TestAFieldThatIsRejectedIsAtItsObjectWhereThePackageDoesNotLocateIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one", data: {
		bad: "yes"
	}}
}`)
	w.site.Refuse(noBad)
	e := &rollout.Engine{Package: unlocated{w.program}, Cluster: w.cluster, Parallel: 4}
	result, err := e.Run(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr(), StoreWriteAhead: func(context.Context, rollout.WriteAhead) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	expectStates(t, result, "a: Failed ObjectRejected")
	if text := message(result, "a"); !strings.Contains(text, "is bad (shop/body.cue:3)") {
		t.Errorf("it says %q, want the line of the object", text)
	}
}

func TestAValueThatMayComeFromASecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	const secret = `import "encoding/base64"
inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
_used: base64.Encode(null, "")
`
	for name, row := range map[string]struct {
		reason, bad string
		field       *field.Path
		want        []string
		not         string
	}{
		"a value made of a Secret": {
			"encoded, no redactor finds the content", `"app:" + base64.Encode(null, inputs.token.object.data.n)`, field.NewPath("data", "bad"),
			[]string{"data.bad: Invalid value: (withheld, it may come from a Secret): is bad", "(shop/body.cue:"}, "YUhWdWRHVnlNaTlvZFc1MFpYSXk",
		},
		"a value in the field that is named": {
			"the field above it is named", `"app:" + base64.Encode(null, inputs.token.object.data.n)`, field.NewPath("data"),
			[]string{"data: Invalid value: (withheld, it may come from a Secret): is bad"}, "YUhWdWRHVnlNaTlvZFc1MFpYSXk",
		},
		"a value that has nothing to do with one": {
			"it helps to see it", `"plainly wrong"`, field.NewPath("data", "bad"),
			[]string{`data.bad: Invalid value: "plainly wrong": is bad`}, "withheld",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, secret+`components: a: objects: one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one", data: bad: `+row.bad+"}")
			w.put("kubectl", &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": w.site.Namespace}, "data": map[string]any{"n": "aHVudGVyMi9odW50ZXIy"},
			}})
			w.site.Refuse(func(_, after *unstructured.Unstructured) error {
				bad, has := "", false
				if after != nil && after.GetKind() == "ConfigMap" {
					bad, has, _ = unstructured.NestedString(after.Object, "data", "bad")
				}
				if !has {
					return nil
				}
				return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), field.ErrorList{field.Invalid(row.field, bad, "is bad")})
			})
			text := message(w.mustRun(), "a")
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: it says %q, which lacks %q", row.reason, text, want)
				}
			}
			if strings.Contains(text, row.not) {
				t.Errorf("%s: it says %q", row.reason, text)
			}
		})
	}
}
