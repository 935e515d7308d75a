package reconcile_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// Whoever looks at a preview may not be allowed to read the Secrets that it rests on.
func TestThePreviewOfAResourceShowsNoSecret(t *testing.T) {
	t.Parallel()
	const inputs = `
import "encoding/base64"

inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
_plain: "\(base64.Decode(null, inputs.tok.object.data.k))"
components: config: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "config", data: k: _plain}
`
	for name, row := range map[string]struct {
		reason, more string
		refused      error
		want         string
	}{
		"an object that is refused": {
			"the API server quotes what it refuses", "",
			apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "config", field.ErrorList{field.Invalid(field.NewPath("data", "k"), "opensesame", "cannot take opensesame")}), "cannot take (withheld, it may come from a Secret)",
		},
		"an object of a kind that is not served": {
			"the kind is told", `components: strange: objects: o: {apiVersion: "v1", kind: "K\(_plain)", metadata: name: "x"}`,
			nil, "does not serve v1 K***",
		},
		"a package that reaches too far": {
			"where it reaches is told", `inputs: far: {apiVersion: "v1", kind: "ConfigMap", name: "x", namespace: _plain}`,
			nil, "namespace ***",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, inputs+row.more)
			b.put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "tok"}, "data": map[string]any{"k": "b3BlbnNlc2FtZQ=="}})
			b.refuse("ConfigMap", "config", row.refused)
			got, err := b.reconciler.Preview(t.Context(), shopKey, b.program)
			if err != nil {
				t.Fatal(err)
			}
			said := got.Fault.Message
			for _, c := range got.Components {
				said += c.Name + ": " + c.Message + "\n"
			}
			if strings.Contains(said, "opensesame") || !strings.Contains(said, row.want) {
				t.Errorf("%s: it says %q, want %q in it", row.reason, said, row.want)
			}
		})
	}
}

func TestThePreviewOfAResourceThatDoesNotExistIsEmpty(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	got, err := b.reconciler.Preview(t.Context(), types.NamespacedName{Namespace: shopKey.Namespace, Name: "gone"}, b.program)
	if err != nil || !got.Fault.IsZero() || len(got.Components) > 0 {
		t.Errorf("got %v with the fault %v (%v)", got.Components, got.Fault, err)
	}
}

func TestAPreviewErrorsWhereTheResourceCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.reconciler.Resources = unread{b.memory}
	if got, err := b.reconciler.Preview(t.Context(), shopKey, b.program); err == nil || got.Fault.State == status.Failed {
		t.Errorf("the error is %v, the fault %v", err, got.Fault)
	}
}

func TestAPreviewSaysWhatKeepsAResourceFromBeingEvaluated(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, want, text string
		prepare            func(*bench)
	}{
		"a status that cannot be read": {
			"nothing is done to the resource either", "StatusUnreadable", "status.inventory is not a list",
			func(b *bench) { b.edit(func(s map[string]any) { s["inventory"] = "nothing" }) },
		},
		"a configuration that is no YAML": {
			"nothing is done to the resource either", "InvalidConfig", reconcile.AnnotationConfig,
			func(b *bench) { b.annotate(reconcile.AnnotationConfig, "a: b: c") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ordered)
			b.rest()
			row.prepare(b)
			before := len(b.memory.Changes())
			got, err := b.reconciler.Preview(t.Context(), shopKey, b.program)
			if err != nil || got.Fault.State != status.Failed || string(got.Fault.Reason) != row.want || !strings.Contains(got.Fault.Message, row.text) {
				t.Errorf("%s: the fault is %+v, the error %v, want %s", row.reason, got.Fault, err, row.want)
			}
			if writes := b.memory.Changes()[before:]; len(writes) > 0 {
				t.Errorf("it writes %v", writes)
			}
		})
	}
}
