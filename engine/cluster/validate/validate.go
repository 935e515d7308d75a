// Package validate does the validation of an API server for writes, without a server.
//
//	FieldTypes   before an apply: can the value of each field be decoded?
//	Write        is the result of a write valid? Names, required fields, enums, immutable fields
//
// It knows the built-in kinds by their Go types. Required fields and enums, which only the
// comments of these types document, are generated with schemas/k8s. For the kinds that
// packages render most often, this package implements further rules of the API server that no
// library exports; a test gives the same objects to both. So an API server may reject an
// object that this package accepts, for a rarer reason, but never accepts one that this
// package rejects.
//
// Of other kinds it validates only the metadata. It decides nothing about access, quotas and
// admission.
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

// FieldTypes errors with a bad request when a value does not have the type of its field: an
// invalid quantity, date or base64 text, a number that is too large. It ignores unknown fields,
// which server-side apply finds by its own types.
func FieldTypes(u *unstructured.Unstructured) error {
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

// withoutStatus returns the content of an object without its status, which is written separately.
func withoutStatus(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		if k != "status" {
			out[k] = v
		}
	}
	return out
}

// Write errors when an API server would reject a write that changes an object from before to
// after; before is nil on creation. The error is Invalid, with all fields, or a bad request if
// the object cannot be decoded.
func Write(before, after *unstructured.Unstructured, namespaced bool) error {
	kind := after.GroupVersionKind()
	faults := apivalidation.ValidateObjectMetaAccessor(after, namespaced, nameRule(kind.GroupKind()), field.NewPath("metadata"))
	if scheme.Scheme.Recognizes(kind) {
		decoded, err := decode(after)
		if err != nil {
			return err
		}
		faults = append(faults, finalizers(after.GetFinalizers())...)
		faults = append(faults, generatedRules(decoded, after)...)
		for _, rule := range kindRules {
			faults = append(faults, rule(decoded)...)
		}
		if before != nil && before.GroupVersionKind() == kind {
			// If before cannot be decoded, it was accepted by another version; skip the comparison.
			if old, err := decode(before); err == nil {
				for _, rule := range updateRules {
					faults = append(faults, rule(old, decoded)...)
				}
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), after.GetName(), faults)
}
