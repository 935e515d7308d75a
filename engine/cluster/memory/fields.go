package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldManagers merges objects and tracks who owns which field, by the library
// that the API server itself uses.
type fieldManagers struct {
	// known are the types of Kubernetes' own kinds, which say which lists merge.
	known managedfields.TypeConverter
	// deduced treats lists as one value, as a CRD without list types does.
	deduced managedfields.TypeConverter
}

func newFieldManagers() *fieldManagers {
	return &fieldManagers{
		known:   applyconfigurations.NewTypeConverter(scheme.Scheme),
		deduced: managedfields.NewDeducedTypeConverter(),
	}
}

func (f *fieldManagers) managerFor(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	types := f.deduced
	if scheme.Scheme.Recognizes(kind) {
		types = f.known
	}
	return managedfields.NewDefaultFieldManager(types, oneVersion{}, oneVersion{}, oneVersion{}, kind, kind.GroupVersion(), "", nil)
}

// apply returns the result of a forced apply of an object to a live one, or to
// none.
func (f *fieldManagers) apply(live, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	m, err := f.managerFor(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	out, err := m.Apply(orEmpty(live, object), withoutServerFields(object), manager, true)
	return asUnstructured(out, err)
}

// AppliedFields returns the managed fields of an object that the engine has applied as it is,
// and that nobody has changed since.
func AppliedFields(object *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	applied, err := newFieldManagers().apply(nil, object, cluster.FieldManager)
	if err != nil {
		return nil, cluster.WrapError(cluster.RefOf(object), "applying", err)
	}
	return applied.GetManagedFields(), nil
}

// Applied returns what a forced apply by the engine makes of a live object, without asking whether it is allowed.
func Applied(live, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := newFieldManagers().apply(live, object, cluster.FieldManager)
	if err != nil {
		return nil, cluster.WrapError(cluster.RefOf(object), "applying", err)
	}
	return out, nil
}

// update returns the result of an update of a live object, or of none.
func (f *fieldManagers) update(live, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	m, err := f.managerFor(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	next := object.DeepCopy()
	if live != nil {
		next.SetManagedFields(live.GetManagedFields())
	}
	out, err := m.Update(orEmpty(live, object), next, manager)
	return asUnstructured(out, err)
}

// schemaFault returns a SchemaError if an object contradicts the type of its kind, or nil.
func (f *fieldManagers) schemaFault(object *unstructured.Unstructured) error {
	return cluster.CheckSchema(f.known, object)
}

func orEmpty(live, object *unstructured.Unstructured) runtime.Object {
	if live != nil {
		return live.DeepCopy()
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(object.GroupVersionKind())
	return empty
}

// withoutServerFields returns what is applied of an object: a UID is a precondition, and a status
// is written separately.
func withoutServerFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	return without(object, "metadata.uid", "metadata.resourceVersion", "metadata.managedFields", "metadata.creationTimestamp", "metadata.generation", "status")
}

// without returns a copy of an object without some fields, such as metadata.uid.
func without(object *unstructured.Unstructured, fields ...string) *unstructured.Unstructured {
	out := object.DeepCopy()
	for _, f := range fields {
		unstructured.RemoveNestedField(out.Object, strings.Split(f, ".")...)
	}
	return out
}

// sameWithout reports whether two states of an object are the same but for some fields.
func sameWithout(a, b *unstructured.Unstructured, fields ...string) bool {
	return equality.Semantic.DeepEqual(without(a, fields...).Object, without(b, fields...).Object)
}

func asUnstructured(o runtime.Object, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("merging gave a %T", o)
	}
	return u, nil
}

// same reports whether two states of an object are the same but for the times in managedFields.
func same(a, b *unstructured.Unstructured) bool {
	owners := func(u *unstructured.Unstructured) []string {
		var out []string
		for _, m := range u.GetManagedFields() {
			out = append(out, m.Manager+string(m.Operation)+m.FieldsV1.GetRawString())
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(owners(a), owners(b)) && sameWithout(a, b, "metadata.managedFields")
}

// oneVersion converts, defaults and creates objects of which there is one version
// and no default.
type oneVersion struct{}

// Default implements runtime.ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Convert implements runtime.ObjectConvertor.
func (oneVersion) Convert(_, _, _ any) error {
	return errors.New("objects in memory are not converted")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
