package memory

import (
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster/validate"
)

// A judge says what an API server would find wrong with an object by itself.
type judge interface {
	// readable errors when the object cannot be applied.
	readable(u *unstructured.Unstructured) error
	// written errors when the object cannot become what a write makes of it.
	written(before, after *unstructured.Unstructured, scope cluster.Scope) error
}

// lenient finds nothing wrong.
type lenient struct{}

func (lenient) readable(*unstructured.Unstructured) error { return nil }

func (lenient) written(_, _ *unstructured.Unstructured, _ cluster.Scope) error { return nil }

// strict goes by package validate.
type strict struct{ types managedfields.TypeConverter }

func (s strict) readable(u *unstructured.Unstructured) error {
	if wrong := cluster.CheckSchema(s.types, u); wrong != nil {
		return wrong
	}
	return validate.FieldTypes(u)
}

func (strict) written(before, after *unstructured.Unstructured, scope cluster.Scope) error {
	return validate.Write(before, after, scope == cluster.Namespaced)
}

// admit validates a write as an API server does, and asks the refusal.
func (m *Cluster) admit(before, after *unstructured.Unstructured) error {
	if err := m.validate(before, after); err != nil || m.refuse == nil {
		return err
	}
	return m.refuse(before, after)
}

// validate refuses what cannot be.
func (m *Cluster) validate(before, after *unstructured.Unstructured) error {
	switch {
	case after == nil:
		return nil
	case before == nil:
		if err := m.begins(after); err != nil {
			return err
		}
	case sameButStatus(before, after):
		return nil
	case before.GetDeletionTimestamp() != nil:
		if err := noNewFinalizers(before, after); err != nil {
			return err
		}
	}
	scope, err := m.scope(after.GroupVersionKind())
	if err != nil {
		return err
	}
	return m.judge.written(before, after, scope)
}

// begins refuses to create anything in a namespace that is not there, or that is being
// deleted.
func (m *Cluster) begins(u *unstructured.Unstructured) error {
	namespace := u.GetNamespace()
	if namespace == "" {
		return nil
	}
	ns := m.objects[cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "Namespace"}, Name: namespace}]
	switch {
	case ns == nil && m.namespaces != nil && !m.namespaces[namespace]:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	case ns == nil || ns.GetDeletionTimestamp() == nil:
		return nil
	}
	err := apierrors.NewForbidden(cluster.ResourceOf(cluster.RefOf(u)), u.GetName(), fmt.Errorf("namespace %s is being deleted", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

// noNewFinalizers refuses to hold what is being deleted.
func noNewFinalizers(before, after *unstructured.Unstructured) error {
	added := slices.DeleteFunc(slices.Clone(after.GetFinalizers()), func(f string) bool { return slices.Contains(before.GetFinalizers(), f) })
	if len(added) == 0 {
		return nil
	}
	return apierrors.NewInvalid(after.GroupVersionKind().GroupKind(), after.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %q", added)),
	})
}
