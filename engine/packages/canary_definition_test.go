package packages

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/crd"
)

// defined returns a definition with the schemas of spec and status as JSON.
func defined(t *testing.T, spec, status string) *definition {
	t.Helper()
	parse := func(text string) jsonSchema {
		var out jsonSchema
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	return &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &jsonSchema{Type: "object", Properties: map[string]jsonSchema{"spec": parse(spec), "status": parse(status)}}},
	}}}}
}

// object is a schema of an object with fields.
func objectOf(fields string) string { return `{"type":"object","properties":{` + fields + `}}` }

// open is a schema of an object with fields, and any others.
func open(fields string) string {
	return `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{` + fields + `}}`
}

func TestTwoVersionsHaveOneDefinitionIfEachReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	none := objectOf("")
	for name, row := range map[string]struct {
		reason            string
		before, next      string
		reported, reports string
		// both is the status of both, and wrong why there is none.
		both, wrong string
	}{
		"the same":                         {"nothing changes", objectOf(`"n":{"type":"integer","maximum":9}`), objectOf(`"n":{"type":"integer","maximum":9}`), none, none, none, ""},
		"a new field":                      {"users cannot write it until the others follow", none, objectOf(`"n":{"type":"integer"}`), none, none, none, ""},
		"a new field that is required":     {"no resource has it", none, `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`, none, none, "", "v1: spec.n is required"},
		"a required field with a default":  {"a resource has it without its user", none, `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","default":1}}}`, none, none, none, ""},
		"a new field of an open object":    {"resources may have it in another form", open(""), open(`"n":{"type":"integer"}`), none, none, "", "v1: spec.n is narrower: what users may have written there was not described"},
		"the same field of an open object": {"resources have it in that form", open(`"n":{"type":"integer"}`), open(`"n":{"type":"integer"}`), none, none, none, ""},
		"a field that is gone":             {"resources have it", objectOf(`"n":{"type":"integer"}`), none, none, none, "", "v1: spec.n does not exist any more"},
		"another type":                     {"resources have the first one", objectOf(`"n":{"type":"integer"}`), objectOf(`"n":{"type":"string"}`), none, none, "", "v1: spec.n has another type"},
		"a lower maximum":                  {"resources may be beyond it", objectOf(`"n":{"type":"integer","maximum":9}`), objectOf(`"n":{"type":"integer","maximum":8}`), none, none, "", "v1: spec.n is narrower: maximum or minimum"},
		"a higher maximum":                 {"all resources are within it", objectOf(`"n":{"type":"integer","maximum":9}`), objectOf(`"n":{"type":"integer","maximum":10}`), none, none, none, ""},
		"a new minimum":                    {"resources may be below it", objectOf(`"n":{"type":"integer"}`), objectOf(`"n":{"type":"integer","minimum":1}`), none, none, "", "v1: spec.n is narrower: maximum or minimum"},
		"no minimum any more":              {"all resources are within it", objectOf(`"n":{"type":"integer","minimum":1}`), objectOf(`"n":{"type":"integer"}`), none, none, none, ""},
		"one choice less":                  {"resources may have it", objectOf(`"n":{"type":"string","enum":["a","b"]}`), objectOf(`"n":{"type":"string","enum":["a"]}`), none, none, "", "v1: spec.n is narrower: enum"},
		"one choice more":                  {"no resource has it", objectOf(`"n":{"type":"string","enum":["a"]}`), objectOf(`"n":{"type":"string","enum":["b","a"]}`), none, none, none, ""},
		"a pattern":                        {"resources may not match it", objectOf(`"n":{"type":"string"}`), objectOf(`"n":{"type":"string","pattern":"^a"}`), none, none, "", "v1: spec.n is narrower: pattern or format"},
		"shorter lists of shorter strings": {"the first one is named", objectOf(`"n":{"type":"array","items":{"type":"string"}}`), objectOf(`"n":{"type":"array","items":{"type":"string","maxLength":3}}`), none, none, "", "v1: spec.n[] is narrower: its size"},
		"a map of other values":            {"resources have the first ones", objectOf(`"n":{"type":"object","additionalProperties":{"type":"string"}}`), objectOf(`"n":{"type":"object","additionalProperties":{"type":"integer"}}`), none, none, "", "v1: spec.n.* has another type"},
		"a rule":                           {"resources may break it", objectOf(`"n":{"type":"string"}`), objectOf(`"n":{"type":"string","x-kubernetes-validations":[{"rule":"self != ''"}]}`), none, none, "", "v1: spec.n is narrower: a rule"},
		"another report":                   {"either version reports its own", none, none, objectOf(`"a":{"type":"string"}`), objectOf(`"b":{"type":"integer"}`), objectOf(`"a":{"type":"string"},"b":{"type":"integer"}`), ""},
		"a report within a report":         {"they are merged", none, none, objectOf(`"a":` + objectOf(`"x":{"type":"string","enum":["p"]}`)), objectOf(`"a":` + objectOf(`"x":{"type":"string","enum":["q"]},"y":{"type":"string"}`)), objectOf(`"a":` + objectOf(`"x":{"type":"string"},"y":{"type":"string"}`)), ""},
		"a report in another form":         {"one of them could not be written", none, none, objectOf(`"a":{"type":"string"}`), objectOf(`"a":{"type":"integer"}`), "", "v1: status.a is reported in another form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := defined(t, row.before, row.reported)
			both, err := bothDefinitions(before, defined(t, row.next, row.reports))
			if err != nil || row.wrong != "" {
				if err == nil || err.Error() != row.wrong {
					t.Errorf("%s: it is refused because of %v, want %q", row.reason, err, row.wrong)
				}
				return
			}
			if diff := cmp.Diff(defined(t, row.before, row.both).Spec, both.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(defined(t, row.before, row.reported), before); diff != "" {
				t.Errorf("the definition before has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTwoVersionsWithOtherAPIsHaveNoDefinitionTogether(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*definition){
		"another scope": func(d *definition) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
		"another reach": func(d *definition) {
			d.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{crd.ReachAnnotation: "{}"}}
		},
		"one more version": func(d *definition) {
			d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2"})
		},
		"another version": func(d *definition) { d.Spec.Versions[0].Name = "v2" },
		"not served":      func(d *definition) { d.Spec.Versions[0].Served = false },
		"no schema":       func(d *definition) { d.Spec.Versions[0].Schema = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := defined(t, objectOf(""), objectOf(""))
			change(next)
			if both, err := bothDefinitions(defined(t, objectOf(""), objectOf("")), next); err == nil {
				t.Errorf("they have %v", both)
			}
		})
	}
}
