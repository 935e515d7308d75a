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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster/validate"
)

// checkTypes errors if an object cannot be applied because a value does not have the type of its
// field.
func (m *Cluster) checkTypes(u *unstructured.Unstructured) error {
	if !m.validates {
		return nil
	}
	if err := m.fields.schemaFault(u); err != nil {
		return err
	}
	return validate.FieldTypes(u)
}

// admit validates a write as an API server does, and then calls the Admission.
func (m *Cluster) admit(before, after *unstructured.Unstructured) error {
	if err := m.validate(before, after); err != nil || m.refuse == nil {
		return err
	}
	return m.refuse(before, after)
}

// validate errors if an API server would reject a write for what is in it.
func (m *Cluster) validate(before, after *unstructured.Unstructured) error {
	switch {
	case after == nil:
		return nil
	case before == nil:
		if err := m.checkNamespace(after); err != nil {
			return err
		}
	case sameWithout(before, after, "status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation"):
		// Only the status differs, which is a subresource.
		return nil
	case before.GetDeletionTimestamp() != nil:
		if err := noNewFinalizers(before, after); err != nil {
			return err
		}
	}
	scope, err := m.scope(after.GroupVersionKind())
	if err != nil || !m.validates {
		return err
	}
	return validate.Write(before, after, scope == cluster.Namespaced)
}

// checkNamespace errors if the namespace of a new object does not exist or is being deleted.
func (m *Cluster) checkNamespace(u *unstructured.Unstructured) error {
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

// noNewFinalizers errors if a write adds finalizers to an object that is being deleted.
func noNewFinalizers(before, after *unstructured.Unstructured) error {
	added := slices.DeleteFunc(slices.Clone(after.GetFinalizers()), func(f string) bool { return slices.Contains(before.GetFinalizers(), f) })
	if len(added) == 0 {
		return nil
	}
	return apierrors.NewInvalid(after.GroupVersionKind().GroupKind(), after.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %q", added)),
	})
}
