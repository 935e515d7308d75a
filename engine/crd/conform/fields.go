package conform

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// statusField is left out of what is compared: the operator writes it anew.
const statusField = "status"

// Fields are those that an API server keeps of the custom resources of one version. It drops all others when it reads or
// writes a resource.
type Fields struct{ structural *schema.Structural }

// NewFields returns the fields of one version of a definition. It errors if there is no such version, or if it has no
// structural schema.
func NewFields(crd *apiextensionsv1.CustomResourceDefinition, version string) (Fields, error) {
	_, structural, err := ofVersion(crd, version)
	if err != nil {
		return Fields{}, err
	}
	delete(structural.Properties, statusField)
	return Fields{structural}, nil
}

// Within reports whether other fields have all of these, so that no resource loses one. It may report false although they do.
func (f Fields) Within(other Fields) bool { return within(f.structural, other.structural) }

// Dropped returns the paths of the fields of a resource that an API server would drop, sorted. Those of its status are not
// among them.
func (f Fields) Dropped(resource map[string]any) []string {
	object := maps.Clone(resource)
	delete(object, statusField)
	object = runtime.DeepCopyJSON(object) // fields are taken out of it
	paths := pruning.PruneWithOptions(object, f.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(paths)
	return paths
}

// within reports whether one schema has all fields of another one.
func within(before, next *schema.Structural) bool {
	switch {
	case before == nil || equality.Semantic.DeepEqual(before, next):
		return true
	case next == nil || before.XEmbeddedResource != next.XEmbeddedResource:
		return false
	case before.XPreserveUnknownFields || next.XPreserveUnknownFields:
		return false // what is known in either of them decides: a resource is looked at
	}
	if more := before.AdditionalProperties; more != nil {
		if next.AdditionalProperties == nil || len(next.Properties) > 0 || !within(more.Structural, next.AdditionalProperties.Structural) {
			return false
		}
	}
	for name, was := range before.Properties {
		if is, ok := next.Properties[name]; !ok || !within(&was, &is) {
			return false
		}
	}
	return within(before.Items, next.Items)
}
