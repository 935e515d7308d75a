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
	owned, applied := appliedFields(present, manager)
	if !applied {
		return false
	}
	for _, m := range []struct {
		owned         map[string]any
		present, want map[string]string
	}{{owned.Metadata.Labels, present.Labels, want.Labels}, {owned.Metadata.Annotations, present.Annotations, want.Annotations}} {
		for name := range m.owned {
			key, isKey := strings.CutPrefix(name, keyPrefix)
			if _, wanted := m.want[key]; isKey && !wanted {
				return false // the apply would take it away
			}
		}
		for key, value := range m.want {
			_, own := m.owned[keyPrefix+key]
			if has, exists := m.present[key]; !own || !exists || has != value {
				return false
			}
		}
	}
	spec, known := plainSpec(want)
	has, readable := plainSpec(present)
	return known && readable && reflect.DeepEqual(has, spec)
}

// keyPrefix is before each name in the fields of a manager. Beside them is a dot for the map itself.
const keyPrefix = "f:"

// ownedFields are the labels and annotations that a manager owns.
type ownedFields struct {
	Metadata struct {
		Labels      map[string]any `json:"f:labels"`
		Annotations map[string]any `json:"f:annotations"`
	} `json:"f:metadata"`
}

// appliedFields returns what a manager has applied, and whether it has applied the definition, and not changed it in
// another way besides.
func appliedFields(of *apiextensionsv1.CustomResourceDefinition, manager string) (out ownedFields, applied bool) {
	for _, m := range of.ManagedFields {
		if m.Manager != manager || m.Subresource != "" {
			continue
		}
		out, applied = ownedFields{}, true
		if m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &out) != nil {
			return ownedFields{}, false
		}
	}
	return out, applied
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
