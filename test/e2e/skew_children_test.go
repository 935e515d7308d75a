package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// part is an object of a kind that somebody else defines. VERSION stands for its version.
const part = `
#Spec: size: int | *1
components: part: {
	objects: part: {
		apiVersion: "parts.NAME.example.com/VERSION"
		kind:       "Part"
		metadata: name: "part-\(cr.metadata.name)"
		spec: size: cr.spec.size
	}
	policy: part: verify: "exists"
}
`

// partVersion is a version of its definition.
func partVersion(name string, storage bool, fields map[string]any) map[string]any {
	return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}},
	}}}
}

// Whoever defines a kind may add a version with a field that has a default, before the package knows that version and after.
func TestH4AKindOfAChildGainsAVersionWithADefault(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	size := map[string]any{"type": "integer"}
	mode := map[string]any{"type": "string", "default": "fast"}
	first := partVersion("v1", true, map[string]any{"size": size})
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "parts.parts.gainer.example.com")
	definition.Object["spec"] = map[string]any{
		"group": "parts.gainer.example.com", "scope": "Namespaced", "versions": []any{first},
		"names": map[string]any{"kind": "Part", "plural": "parts"},
	}
	s.Create(definition)
	p := newTestPackage(t, "gainer", strings.ReplaceAll(part, "VERSION", "v1"))
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", nil))
	s.ExpectResourceReady(cr)
	object := harness.Object("parts.gainer.example.com/v1", "Part", s.Namespace, "part-shop")
	has := func(what string, size int64, mode any) *unstructured.Unstructured {
		t.Helper()
		return s.ExpectObject(object, what, func(u *unstructured.Unstructured) error {
			if harness.Field(u, "spec", "size") != size || harness.Field(u, "spec", "mode") != mode {
				return harness.ErrNotYet
			}
			return nil
		})
	}
	uid := has("to be made", 1, nil).GetUID()

	old := partVersion("v1", false, map[string]any{"size": size, "mode": mode})
	next := partVersion("v2", true, map[string]any{"size": size, "mode": mode})
	s.Patch(definition, map[string]any{"spec": map[string]any{"versions": []any{old, next}}})
	has("to have the default", 1, "fast")
	s.Patch(cr, harness.Spec(map[string]any{"size": 2}))
	has("to be changed in the old version", 2, "fast")
	harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+strings.ReplaceAll(part, "VERSION", "v2"), "NAME", p.Name))
	s.Patch(cr, harness.Spec(map[string]any{"size": 3}))
	if got := has("to be changed in the new version", 3, "fast").GetUID(); got != uid {
		t.Error("the object was made anew")
	}
	s.ExpectResourceReady(cr)
	s.Delete(cr)
	s.ExpectGone(cr)
	s.ExpectGone(object)
}
