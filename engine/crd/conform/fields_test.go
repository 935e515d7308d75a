package conform_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"operetta.dev/engine/crd/conform"
)

// fieldsOf returns the fields of a definition with a schema of the spec.
func fieldsOf(t *testing.T, spec string) conform.Fields {
	t.Helper()
	out, err := conform.NewFields(withSpec(t, spec), "v1")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFieldsThatAnotherDefinitionDoesNotHaveAreDropped(t *testing.T) {
	t.Parallel()
	const (
		ab       = "{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}}}}}"
		list     = "{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}}}"
		texts    = "{type: object, properties: {m: {type: object, additionalProperties: {type: string}}}}"
		anything = "{type: object, properties: {m: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
	)
	for name, tc := range map[string]struct {
		reason, before, next string
		within               bool
		spec                 string
		want                 []string
	}{
		"the same":            {"nothing is looked at", ab, ab, true, "{a: x, b: {c: y}}", nil},
		"one more":            {"it has all that there was", ab, "{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}, d: {type: string}}}}}", true, "{a: x, b: {c: y}}", nil},
		"a narrower bound":    {"a value that is refused is not dropped", ab, "{type: object, properties: {a: {type: string, maxLength: 1}, b: {type: object, properties: {c: {type: string}}}}}", true, "{a: xyz}", nil},
		"a field":             {"it is not known any more", ab, "{type: object, properties: {b: {type: object, properties: {c: {type: string}}}}}", false, "{a: x, b: {c: y}}", []string{"spec.a"}},
		"a field not set":     {"there is nothing that could be dropped", ab, "{type: object, properties: {b: {type: object, properties: {c: {type: string}}}}}", false, "{b: {c: y}}", nil},
		"a field of a struct": {"the struct stays", ab, "{type: object, properties: {a: {type: string}, b: {type: object, properties: {}}}}", false, "{a: x, b: {c: y}}", []string{"spec.b.c"}},
		"a struct as a text":  {"what is in it has no place", ab, "{type: object, properties: {a: {type: string}, b: {type: string}}}", false, "{b: {c: y}}", []string{"spec.b.c"}},
		"of elements":         {"each is named", list, "{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}}", false, "{l: [{a: x, b: y}, {b: z}]}", []string{"spec.l[0].b", "spec.l[1].b"}},
		"a map":               {"its keys are fields", texts, "{type: object, properties: {m: {type: object}}}", false, "{m: {k: v}}", []string{"spec.m.k"}},
		"a map of structs":    {"one key may be another thing", texts, "{type: object, properties: {m: {type: object, properties: {k: {type: string}}}}}", false, "{m: {k: v, l: w}}", []string{"spec.m.l"}},
		"anything":            {"what is described now is what stays", anything, texts, false, "{m: {k: v, l: {deep: w}}}", []string{"spec.m.l.deep"}},
		"anything now":        {"whatever there is stays", texts, anything, false, "{m: {k: v}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, next := fieldsOf(t, tc.before), fieldsOf(t, tc.next)
			if got := before.Within(next); got != tc.within {
				t.Errorf("%s: within is %v", tc.reason, got)
			}
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			resource := map[string]any{
				"apiVersion": "example.com/v1", "kind": "Web", "metadata": map[string]any{"name": "a", "labels": map[string]any{"x": "y"}},
				"spec": spec, "status": map[string]any{"old": "the operator writes it anew"},
			}
			was := cmp.Diff(nil, resource)
			if diff := cmp.Diff(tc.want, next.Dropped(resource)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(was, cmp.Diff(nil, resource)); diff != "" {
				t.Errorf("the resource has changed:\n%s", diff)
			}
		})
	}
}

func TestThereAreFieldsOnlyOfAVersionWithASchema(t *testing.T) {
	t.Parallel()
	if _, err := conform.NewFields(withSpec(t, "{type: object}"), "v2"); err == nil {
		t.Error("there is no version v2")
	}
	bare := withSpec(t, "{type: object}")
	bare.Spec.Versions[0].Schema = nil
	if _, err := conform.NewFields(bare, "v1"); err == nil {
		t.Error("there is no schema")
	}
}
