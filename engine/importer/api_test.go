package importer_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/importer"
)

// TestImportTakesOverADefinition imports a definition, and definitions that say what CUE or the contract cannot. Import
// itself compares the definition that the package generates with the one that was given.
func TestImportTakesOverADefinition(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/memcached.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(data)
	const size = "size: {type: integer, format: int32, minimum: 1, maximum: 5, default: 2"
	for name, c := range map[string]struct {
		reason, old, changed string
		want                 []string
	}{
		"as it is":                              {"every part has its CUE", "", "", nil},
		"a required field":                      {"the sample has it", "required: [image]", "required: [image, mode, hosts]", nil},
		"a list that is a map":                  {"an attribute says it", "hosts: {type: array,", "hosts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],", nil},
		"a multiple":                            {"nothing writes it", size, "size: {multipleOf: 2, type: integer, format: int32, minimum: 1, maximum: 5, default: 2", []string{"in.yaml:1: spec.size: multipleOf would be <nil>, and is 2"}},
		"a choice of fields":                    {"CUE says it otherwise", "mode: {type: string, enum: [a, b]}", "mode: {type: string, anyOf: [{minLength: 1}, {pattern: a}]}", []string{"in.yaml:1: spec.mode: anyOf would be <nil>, and is [map[minLength:1] map[pattern:a]]"}},
		"a second version":                      {"import writes one, and no conversion", "  versions:\n", "  versions:\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", []string{"in.yaml:1: version v1beta1 is served beside the one that is stored: import writes a package with one version"}},
		"another kind":                          {"it is not there", "kind: Memcached,", "kind: Redis,", []string{"none of the objects is the CustomResourceDefinition of Memcached"}},
		"a default that is not the first value": {"the order means nothing", "mode: {type: string, enum: [a, b]}", "mode: {type: string, enum: [a, b], default: b}", nil},
		"a version that is CUE":                 {"it would be a field of the package", "name: v1alpha1", `name: "v1: {spec: #Spec}\nrequeueAfter: \"1s\"\nversions: v1"`, []string{`in.yaml:1: "v1: {spec: #Spec}\nrequeueAfter: \"1s\"\nversions: v1" is no version that a package can have`}},
		"a column that is CUE":                  {"it is quoted", "jsonPath: .spec.size}", `jsonPath: .spec.size, description: "\x7f\"}\n#x: 1"}`, nil},
		"a description with CUE":                {"it stands in a comment", `It is small."`, `It is small.\nx: 1"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(whole, c.old, c.changed, 1)
			if c.old != "" && text == whole {
				t.Fatalf("%q is not in the definition", c.old)
			}
			result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("memcached"), API: "Memcached"})
			var got []string
			if refused, ok := errors.AsType[*importer.RefusedError](err); ok {
				got = refused.Reasons
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: reasons (-want +got):\n%s", c.reason, diff)
			}
			if err == nil {
				load(t, result.Files, "memcached")
			}
		})
	}
}
