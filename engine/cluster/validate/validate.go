// Package validate says what an API server would refuse to write, without one.
//
//	Readable   may an object be applied? Values that cannot be read
//	Written    is what a write makes of an object allowed? Names, what is required, enums, immutable fields
//
// It knows Kubernetes' own kinds by their Go types. What their comments say besides, which
// fields are required and what enums allow, is generated with schemas/k8s. What no library
// says is written out here for the kinds that packages render most often: it is what the API
// server's own code does, and a test puts the same objects to both. An object that it
// accepts may therefore be refused by an API server, for a reason that is rarer; one that it
// refuses is refused there.
//
// Kinds that it does not know are taken as they are, but for their metadata. It decides
// nothing about access, quotas and admission.
package validate

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// Readable errors with a bad request when a value of an object is none of its field: a
// quantity, a date, base64, a number that is too large. Fields that its kind does not have
// are for the types of server-side apply to find.
func Readable(u *unstructured.Unstructured) error {
	if !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return nil
	}
	_, err := decode(u)
	return err
}

// decode returns an object as its Go type, without its status. It errors with a bad
// request.
func decode(u *unstructured.Unstructured) (runtime.Object, error) {
	out, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(withoutStatus(u), out); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("strict decoding error: %v", err))
	}
	return out, nil
}

// withoutStatus returns the content of an object, but for what has a way of its own.
func withoutStatus(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		if k != "status" {
			out[k] = v
		}
	}
	return out
}

// Written errors when an API server would not let an object become what it is after a
// write; before is nil for one that is created. The error says Invalid, with all fields, or
// that the object cannot be read.
func Written(before, after *unstructured.Unstructured, namespaced bool) error {
	kind := after.GroupVersionKind()
	faults := apivalidation.ValidateObjectMetaAccessor(after, namespaced, nameRule(kind.GroupKind()), field.NewPath("metadata"))
	if scheme.Scheme.Recognizes(kind) {
		decoded, err := decode(after)
		if err != nil {
			return err
		}
		faults = append(faults, finalizers(after.GetFinalizers())...)
		faults = append(faults, generated(decoded, after)...)
		faults = append(faults, object(decoded)...)
		if before != nil && before.GroupVersionKind() == kind {
			// What is there was accepted, by whoever accepted it.
			if old, err := decode(before); err == nil {
				faults = append(faults, change(old, decoded)...)
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), after.GetName(), faults)
}
