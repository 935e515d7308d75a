package e2e

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"operetta.dev/test/harness"
)

// An older engine does not take away from the definition of a newer one what it does not know: the API server
// would drop it from each Package that is written, and nobody would be told that something does not hold any more.
func TestI6AnOlderEngineLeavesTheDefinitionOfANewerOneAndRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	first := s.StartPackageOperator()
	p := s.NewPackageObject("objskew")
	p.Apply(p.InlineBody(note("a")))
	served := harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest")
	first.Stop()

	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "packages.operetta.dev")
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fromTheFuture"
	const number = "/metadata/annotations/operetta.dev~1definitions"
	change := func(operations ...map[string]any) {
		t.Helper()
		patch := client.RawPatch(types.JSONPatchType, harness.Encode(t, operations))
		if err := harness.Suite.Admin.Patch(context.WithoutCancel(t.Context()), definition.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	change(map[string]any{"op": "replace", "path": number, "value": "99"}, map[string]any{"op": "add", "path": field, "value": map[string]any{"type": "integer"}})
	t.Cleanup(func() {
		change(map[string]any{"op": "replace", "path": number, "value": "1"}, map[string]any{"op": "remove", "path": field})
	})

	o := s.StartPackageOperator()
	o.ExpectLog("the definition is that of a newer engine, and stays", "definition=packages.operetta.dev")
	s.ExpectObject(definition, "to have the field of the newer engine", func(u *unstructured.Unstructured) error {
		if u.GetAnnotations()["operetta.dev/definitions"] != "99" {
			return harness.ErrNotYet
		}
		return nil
	})
	// A limit that this engine does not know is said, and not ignored.
	changed := p.InlineBody(note("b"))
	if err := unstructured.SetNestedField(changed.Object, int64(3), "spec", "fromTheFuture"); err != nil {
		t.Fatal(err)
	}
	p.Apply(changed)
	u := p.Expect("Ready", "False", "InvalidSpec", "fromTheFuture", " is served")
	if got := harness.Field(u, "status", "digest"); got != served || harness.Field(u, "spec", "fromTheFuture") != int64(3) {
		t.Errorf("%v is served, not %v; the spec is %v", got, served, u.Object["spec"])
	}
}
