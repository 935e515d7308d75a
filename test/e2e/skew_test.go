package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/test/harness"
)

// An older engine does not take away from the definition of a newer one what it does not know: the API server
// would drop it from each Package that is written, and nobody would be told that something does not hold any more.
func TestI6AnOlderEngineLeavesTheDefinitionOfANewerOneAndRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	harness.EngineDefinitions.Lock()
	t.Cleanup(harness.EngineDefinitions.Unlock) // after the cleanup below
	s := newEnv(t)
	first := s.StartPackageOperator()
	p := s.NewPackageObject("objskew")
	p.Apply(p.InlineBody(note("a")))
	served := harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest")
	first.Stop()

	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "packages.operetta.dev")
	changePackageDefinition(t, map[string]any{"op": "replace", "path": futureNumber, "value": "99"}, map[string]any{"op": "add", "path": futureField, "value": map[string]any{"type": "integer"}})
	t.Cleanup(func() {
		changePackageDefinition(t, map[string]any{"op": "replace", "path": futureNumber, "value": definitionsNumber()}, map[string]any{"op": "remove", "path": futureField})
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
	u := p.Expect("Ready", "False", "InvalidSpec", "fromTheFuture", fmt.Sprint(served, " is served"))
	if got := harness.Field(u, "status", "digest"); got != served || harness.Field(u, "spec", "fromTheFuture") != int64(3) {
		t.Errorf("%v is served, not %v; the spec is %v", got, served, u.Object["spec"])
	}
}
