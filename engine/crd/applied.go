package crd

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsApplied reports whether an apply of a definition by a field manager would change nothing that matters of the present
// one, so that it need not be sent: the manager has applied the labels and annotations that are wanted and no others,
// and the specification is the wanted one with its defaults. It is false when in doubt.
//
// Only a client that may write the definition itself can influence the result.
func IsApplied(present, want *apiextensionsv1.CustomResourceDefinition, manager string) bool {
	owned, applied := appliedMetadata(present, manager)
	if !applied {
		return false
	}
	for _, m := range []struct {
		owned         map[string]struct{}
		present, want map[string]string
	}{{owned.Labels, present.Labels, want.Labels}, {owned.Annotations, present.Annotations, want.Annotations}} {
		for key := range m.owned {
			if _, wanted := m.want[key]; !wanted {
				return false // the apply would take it away
			}
		}
		for key, value := range m.want {
			_, own := m.owned[key]
			if has, exists := m.present[key]; !own || !exists || has != value {
				return false
			}
		}
	}
	spec, known := plainSpec(want)
	has, readable := plainSpec(present)
	return known && readable && reflect.DeepEqual(has, spec)
}

// ownedMetadata are the labels and annotations that a manager owns.
type ownedMetadata struct{ Labels, Annotations map[string]struct{} }

// appliedMetadata returns the labels and annotations that a manager has applied, and whether it has applied the
// definition, and not changed it in another way besides.
func appliedMetadata(of *apiextensionsv1.CustomResourceDefinition, manager string) (out ownedMetadata, applied bool) {
	for _, m := range of.ManagedFields {
		if m.Manager != manager || m.Subresource != "" {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels      map[string]any `json:"f:labels"`
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			return ownedMetadata{}, false
		}
		out, applied = ownedMetadata{namesOf(fields.Metadata.Labels), namesOf(fields.Metadata.Annotations)}, true
	}
	return out, applied
}

// namesOf returns the names of a map of fields, which are written as f:NAME beside a dot for the map itself.
func namesOf(fields map[string]any) map[string]struct{} {
	out := map[string]struct{}{}
	for name := range fields {
		if key, is := strings.CutPrefix(name, "f:"); is {
			out[key] = struct{}{}
		}
	}
	return out
}

// plainSpec returns the specification of a definition as an API server keeps it, as plain data, if that is possible.
func plainSpec(of *apiextensionsv1.CustomResourceDefinition) (out any, ok bool) {
	spec := of.Spec.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(spec)
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // two large integers are not one
	err = decoder.Decode(&out)
	return out, err == nil
}
