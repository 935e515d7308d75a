package importer_test

import (
	"errors"
	"os"
	"regexp"
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
		"a multiple":                            {"nothing writes it", size, "size: {multipleOf: 2, type: integer, format: int32, minimum: 1, maximum: 5, default: 2", []string{"in.yaml:1: spec.size: multipleOf is 2, and the package would have none"}},
		"a choice of fields":                    {"CUE says it otherwise", "mode: {type: string, enum: [a, b]}", "mode: {type: string, anyOf: [{minLength: 1}, {pattern: a}]}", []string{`in.yaml:1: spec.mode: anyOf is [{"minLength":1},{"pattern":"a"}], and the package would have none`}},
		"a time":                                {"CUE checks it", "pct: {type: number}", "pct: {type: string, format: date-time}", nil},
		"bytes":                                 {"CUE has them", "pct: {type: number}", "pct: {type: string, format: byte}", nil},
		"a number of 32 bits":                   {"its bounds are those of the format", "pct: {type: number}", "pct: {type: integer, format: int32}", nil},
		"a number of 32 bits with a bound":      {"the format is the other one", "pct: {type: number}", "pct: {type: integer, format: int32, minimum: 0}", nil},
		"a number of 64 bits":                   {"every integer is one", "pct: {type: number}", "pct: {type: integer, format: int64}", nil},
		"a struct that is applied as a whole":   {"a note says that it is not any more", "pct: {type: number}", "pct: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}", nil},
		"a format that nothing has":             {"it is said in words", "pct: {type: number}", "pct: {type: string, format: uuid}", []string{"in.yaml:1: spec.pct: format is uuid, and the package would have none"}},
		"bytes of a length":                     {"CUE has no bound for them", "pct: {type: number}", "pct: {type: string, format: byte, maxLength: 9}", []string{"in.yaml:1: spec.pct: format is byte, and the package would have none"}},
		"a spec without a required field":       {"the package makes one with the defaults", "            required: [image]\n", "", nil},
		"a quantity":                            {"resource.Quantity of Go is in most definitions", "pct: {type: number}", `pct: {anyOf: [{type: integer}, {type: string}], pattern: "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$", x-kubernetes-int-or-string: true}`, nil},
		"a quantity with a default":             {"it is a text of the pattern", "pct: {type: number}", `pct: {anyOf: [{type: integer}, {type: string}], default: 1Gi, pattern: "^[0-9]+(Gi)?$", x-kubernetes-int-or-string: true}`, nil},
		"a number with bounds, or a text":       {"each has its own", "pct: {type: number}", `pct: {default: 3, minimum: 1, maximum: 9, minLength: 2, maxLength: 4, x-kubernetes-int-or-string: true}`, nil},
		"a number or a text that may be null":   {"null is a third", "pct: {type: number}", `pct: {nullable: true, pattern: "^[0-9]+%$", x-kubernetes-int-or-string: true}`, nil},
		"a scale":                               {"kubectl scale and autoscalers use it", "subresources: {status: {}}", "subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}}", nil},
		"quantities by name":                    {"the limits of a container are such a map", "pct: {type: number}", `pct: {type: object, additionalProperties: {pattern: "^[0-9]+(Gi)?$", x-kubernetes-int-or-string: true}}`, nil},
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

// TestDescriptionsAreThoseOfTheDefinition imports a definition with and without descriptions: what is written in front of a
// field becomes its description, which kubectl explain prints.
func TestDescriptionsAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/memcached.yaml")
	if err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`, description: "Size[^"]*"|            description: MemcachedSpec.*\n|        description: Memcached is.*\n`)
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"with descriptions":     {"they are kept", string(data), []string{"// MemcachedSpec defines the desired state", "// Size is the number of pods.", "// It is small."}},
		"without descriptions":  {"nothing is said of a field that nothing is known of", of.ReplaceAllString(string(data), ""), []string{"// Memcached is as in the definition that was imported."}},
		"with one for the kind": {"it is the next best", strings.Replace(string(data), "            description: MemcachedSpec defines the desired state\n", "", 1), []string{"// Memcached is the Schema for the memcacheds API.", "// Size is the number of pods.", "// It is small."}},
	} {
		result, err := importer.Import(t.Context(), objectsIn(t, c.text), importer.Options{Package: packageOf("memcached"), API: "Memcached"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range result.Files {
			if strings.HasSuffix(f.Path, "memcached.cue") {
				for _, line := range regexp.MustCompile(`(?m)^\s*// .*`).FindAllString(string(f.Content), -1)[1:] { // behind that of the package
					got = append(got, strings.TrimSpace(line))
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

// TestWhatADefinitionLosesIsNoted imports what a definition may have and no package can, and what a package adds.
func TestWhatADefinitionLosesIsNoted(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/memcached.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"            required: [image]\n", "", "storage: {type: object,", "storage: {type: object, x-kubernetes-map-type: atomic,",
		"items: {type: object,", "items: {type: object, x-kubernetes-map-type: atomic,", "labels: {type: object,", "labels: {type: object, x-kubernetes-map-type: granular,",
	).Replace(string(data))
	result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("memcached"), API: "Memcached"})
	if err != nil {
		t.Fatal(err)
	}
	const left = ": x-kubernetes-map-type atomic is left out: a server-side apply merges the fields of several managers"
	want := []string{
		"in.yaml:1: the schema of the status is left out: the package has one of its own",
		"in.yaml:1: spec.hosts[]" + left, "in.yaml:1: spec.storage" + left,
		"in.yaml:1: a resource without a spec gets one with the defaults, because no field of it is required",
	}
	if diff := cmp.Diff(want, result.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
