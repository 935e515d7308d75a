package conform_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"operetta.dev/engine/crd/conform"
)

// withSpec is a CRD whose spec has a schema written as YAML.
func withSpec(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(spec), &schema); err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "webs.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Web", Plural: "webs"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": schema},
				}},
			}},
		},
	}
}

func TestCheckRefusesWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, spec, want string }{
		"Valid":         {"a plain schema is fine", "{type: object, properties: {a: {type: string}}}", ""},
		"NoType":        {"a structural schema has a type everywhere", "{type: object, properties: {a: {pattern: x}}}", "Required value: must not be empty for specified object fields"},
		"TypeInAnyOf":   {"and only there", "{type: object, anyOf: [{type: object}]}", "must be empty to be structural"},
		"WrongDefault":  {"a default has to be valid", "{type: object, properties: {a: {type: string, default: 1}}}", "must be of type string"},
		"UnknownInRule": {"rules are compiled", "{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self.x}]}}}", "compilation failed"},
		"CostlyRule":    {"rules have a budget", "{type: object, properties: {a: {type: array, items: {type: array, items: {type: string, x-kubernetes-validations: [{rule: \"self.matches('^a+$')\"}]}}}}}", "exceeds budget"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := conform.Check(withSpec(t, c.spec))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s\n%v", c.reason, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
			}
		})
	}
}

func TestAdmitDoesWhatTheServerDoes(t *testing.T) {
	t.Parallel()
	const schema = `
type: object
required: [image]
properties:
  image: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: is immutable}]}
  replicas: {type: integer, default: 1, maximum: 5}
  tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
`
	cases := map[string]struct{ reason, spec, old, stored, want string }{
		"Defaults":      {"defaults are filled in", "{image: a}", "", "{image: a, replicas: 1}", ""},
		"Required":      {"what is required must be there", "{}", "", "", "spec.image: Required value"},
		"Bounds":        {"bounds are checked", "{image: a, replicas: 6}", "", "", "should be less than or equal to 5"},
		"UnknownFields": {"a typo is refused, as by kubectl", "{image: a, replica: 6}", "", "", "unknown field"},
		"SetOfTags":     {"sets have no duplicates", "{image: a, tags: [x, x]}", "", "", "Duplicate value"},
		"Unchanged":     {"a transition rule allows what it allows", "{image: a, replicas: 2}", "{image: a}", "{image: a, replicas: 2}", ""},
		"Changed":       {"and refuses the rest", "{image: b}", "{image: a}", "", "is immutable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := conform.NewServer(withSpec(t, schema), "v1")
			if err != nil {
				t.Fatal(err)
			}
			object := map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "spec": parse(t, c.spec)}
			var old map[string]any
			if c.old != "" {
				old = map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "spec": parse(t, c.old)}
			}
			stored, err := server.Admit(object, old)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", c.reason, err)
			}
			if diff := cmp.Diff(parse(t, c.stored), stored["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAnUnknownVersionHasNoServer(t *testing.T) {
	t.Parallel()
	if _, err := conform.NewServer(withSpec(t, "{type: object}"), "v2"); err == nil {
		t.Error("there is only v1")
	}
}

// parse reads YAML with integers as the API server has them.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range m {
		if f, ok := v.(float64); ok {
			m[k] = int64(f)
		}
	}
	return m
}
