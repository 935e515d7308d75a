package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

func TestAnOperatorDoesNotReplaceTheDefinitionOfAnotherOperatorsPackage(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s, another := newEnv(t), newEnv(t)
	s.StartPackageOperator()
	another.StartPackageOperator()
	first := s.NewPackageObject("selfirst")
	first.Apply(first.InlineBody(note("first")))
	first.Expect("Ready", "True", "Served")
	thing := s.Create(first.Thing(s.Env, "one", map[string]any{}))
	s.ExpectResourceReady(thing)

	second := another.NewPackageObject("selsecond")
	second.Apply(second.Inline(map[string]any{"main.cue": first.Text(note("second"))}))
	second.Expect("Ready", "False", "KindTaken", "things.selfirst.example.com", "Package selfirst", "another operator")
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.selfirst.example.com")
	s.ExpectObject(definition, "to be that of the first one", func(u *unstructured.Unstructured) error {
		if u.GetLabels()["operetta.dev/package"] != "selfirst" {
			return harness.ErrNotYet
		}
		return nil
	})

	// The kind is free once the first one is gone.
	s.Delete(thing)
	s.ExpectFinished(thing)
	s.Delete(first.Ref())
	s.ExpectGone(first.Ref())
	second.Expect("Ready", "True", "Served")
}
