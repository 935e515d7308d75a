package crd_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/crd"
	"sigs.k8s.io/yaml"
)

func TestADefinitionLacksWhatWouldBeLostByIt(t *testing.T) {
	t.Parallel()
	const all = `{type: object, properties: {a: {type: string}, list: {type: array, items: {type: object, properties: {b: {type: integer}}}}, map: {type: object, additionalProperties: {type: object, properties: {c: {type: string}}}}}}`
	for name, tc := range map[string]struct{ reason, present, wanted, want string }{
		"Same":        {"nothing is lost", all, all, ""},
		"More":        {"what it has besides does no harm", all, `{type: object, properties: {a: {type: string}}}`, ""},
		"Field":       {"it is dropped when it is written", `{type: object, properties: {}}`, `{type: object, properties: {a: {type: string}}}`, "v1.a"},
		"InAList":     {"", `{type: object, properties: {a: {type: string}, list: {type: array, items: {type: object}}}}`, all, "v1.list[].b"},
		"InAMap":      {"", `{type: object, properties: {a: {type: string}, list: {type: array, items: {type: object, properties: {b: {type: integer}}}}, map: {type: object, additionalProperties: {type: object}}}}`, all, "v1.map{}.c"},
		"NoMap":       {"", `{type: object}`, `{type: object, additionalProperties: {type: string}}`, "v1{}"},
		"AnotherType": {"it would be refused", `{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: string}}}`, "v1.a"},
		"Anything":    {"whatever is written stays", `{type: object, x-kubernetes-preserve-unknown-fields: true}`, all, ""},
		"NotAnything": {"what is not named would be dropped", `{type: object}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, "v1"},
	} {
		if got := crd.MissingField(definitionWith(t, tc.present, true), definitionWith(t, tc.wanted, true)); got != tc.want {
			t.Errorf("%s: %s: it lacks %q, not %q", name, tc.reason, got, tc.want)
		}
	}
	if got := crd.MissingField(definitionWith(t, all, false), definitionWith(t, all, true)); got != "version v1" {
		t.Errorf("a version that is not served: it lacks %q", got)
	}
	if got := crd.MissingField(&apiextensionsv1.CustomResourceDefinition{}, definitionWith(t, all, false)); got != "" {
		t.Errorf("a version that nobody serves: it lacks %q", got)
	}
}

func definitionWith(t *testing.T, schema string, served bool) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	v := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: served, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}}
	if err := yaml.UnmarshalStrict([]byte(schema), v.Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{v}}}
}
