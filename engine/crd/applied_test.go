package crd_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/crd"
)

// managed returns an entry of managed fields.
func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestAnApplyThatWouldChangeNothingIsKnown(t *testing.T) {
	t.Parallel()
	const owned = `{"f:metadata":{"f:labels":{".":{},"f:a":{}},"f:annotations":{"f:b/c":{}}},"f:spec":{"f:group":{}}}`
	type definition = apiextensionsv1.CustomResourceDefinition
	for name, tc := range map[string]struct {
		reason string
		change func(present, want *definition)
		want   bool
	}{
		"Same":         {"it was applied, and has the defaults since then", func(_, _ *definition) {}, true},
		"Status":       {"the status is of the API server", func(p, _ *definition) { p.Status.StoredVersions = []string{"v1"} }, true},
		"Others":       {"labels and annotations of others stay", func(p, _ *definition) { p.Labels["other"] = "x" }, true},
		"Order":        {"the order of names in a default says nothing", func(p, _ *definition) { schemaOf(p).Default = rawJSON(`{"y": 2, "x": 1}`) }, true},
		"OtherManager": {"what another manager has applied is not owned", func(p, _ *definition) { p.ManagedFields[0].Manager = "helm" }, false},
		"Updated":      {"an update has to become an apply", func(p, _ *definition) { p.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate }, false},
		"AlsoUpdated": {"also beside an apply", func(p, _ *definition) {
			p.ManagedFields = append(p.ManagedFields, managed("operetta", metav1.ManagedFieldsOperationUpdate, `{}`))
		}, false},
		"Unmanaged":      {"nobody has applied it", func(p, _ *definition) { p.ManagedFields = nil }, false},
		"Unreadable":     {"it cannot be known", func(p, _ *definition) { p.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`[`) }, false},
		"NoFields":       {"it cannot be known either", func(p, _ *definition) { p.ManagedFields[0].FieldsV1 = nil }, false},
		"LabelChanged":   {"somebody has written it", func(p, _ *definition) { p.Labels["a"] = "other" }, false},
		"LabelGone":      {"somebody has taken it off", func(p, _ *definition) { delete(p.Labels, "a") }, false},
		"LabelUnowned":   {"somebody else put it there", func(p, w *definition) { p.Labels["new"], w.Labels["new"] = "1", "1" }, false},
		"LabelWanted":    {"it is new", func(_, w *definition) { w.Labels["new"] = "1" }, false},
		"LabelUnwanted":  {"an apply takes it away", func(_, w *definition) { delete(w.Labels, "a") }, false},
		"NoteUnwanted":   {"and an annotation as well", func(_, w *definition) { w.Annotations = nil }, false},
		"SchemaWanted":   {"a field is new", func(_, w *definition) { schemaOf(w).Type = "string" }, false},
		"SchemaChanged":  {"somebody has changed the schema", func(p, _ *definition) { schemaOf(p).Description = "mine" }, false},
		"DefaultChanged": {"somebody has changed a default", func(p, _ *definition) { schemaOf(p).Default = rawJSON(`{"x":1,"y":3}`) }, false},
		"LargeDefault": {"large integers are not rounded", func(p, w *definition) {
			schemaOf(p).Default, schemaOf(w).Default = rawJSON(`9007199254740993`), rawJSON(`9007199254740992`)
		}, false},
		"NotJSON":      {"what cannot be read is not the same", func(p, w *definition) { schemaOf(p).Default, schemaOf(w).Default = rawJSON(`{`), rawJSON(`{`) }, false},
		"Converts":     {"a webhook converts", func(p, _ *definition) { p.Spec.Conversion.Strategy = apiextensionsv1.WebhookConverter }, false},
		"VersionAdded": {"somebody has added a version", func(p, _ *definition) { p.Spec.Versions = append(p.Spec.Versions, p.Spec.Versions[0]) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := &definition{}
			want.Name, want.Labels, want.Annotations = "things.example.com", map[string]string{"a": "1"}, map[string]string{"b/c": "2"}
			want.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Default: rawJSON(`{"x":1,"y":2}`)},
				}}},
			}
			present := want.DeepCopy()
			apiextensionsv1.SetDefaults_CustomResourceDefinition(present)
			present.ManagedFields = []metav1.ManagedFieldsEntry{managed("operetta", metav1.ManagedFieldsOperationApply, owned)}
			tc.change(present, want)
			if got := crd.IsApplied(present, want, "operetta"); got != tc.want {
				text, _ := json.Marshal(present)
				t.Errorf("%s: IsApplied returned %t for %s", tc.reason, got, text)
			}
		})
	}
}

// rawJSON returns JSON as a schema has it.
func rawJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// schemaOf returns the schema of the first version of a definition.
func schemaOf(of *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return of.Spec.Versions[0].Schema.OpenAPIV3Schema
}
