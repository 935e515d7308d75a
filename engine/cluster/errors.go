package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

// WrapError wraps an error with the identity of the object. A message of the API server about a
// Secret may quote its content, so only the reason of such an error is shown.
func WrapError(ref Ref, doing string, err error) error {
	if unserved(err) {
		return &KindNotServedError{Kind: ref.GroupVersionKind}
	}
	if wrong, ok := errors.AsType[*SchemaError](err); ok {
		return wrong // it names the object, and withholds messages about Secrets
	}
	if replaced(err) {
		err = Conflict(ref, "there is another object of that name: %w", err)
	}
	if !object.MayBeSecret(ref.Kind) {
		return fmt.Errorf("%s: %s: %w", ref, doing, err)
	}
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		reason = "failed"
	}
	return &withheldError{text: fmt.Sprintf("%s: %s: %s%s", ref, doing, reason, withheldText(ref, doing, err)), cause: err}
}

// reading is what a read of an object does.
const reading = "reading"

// withheldText stands for the message of an error about a Secret. If the request was forbidden, it names the permission that may be
// missing. The API server sees no content of an object before it decides about a read, and only a permission can forbid that.
func withheldText(ref Ref, doing string, err error) string {
	const withheld = " (the message is withheld, it may quote the Secret)"
	verbs := map[string]string{
		reading: "get", "applying": "create or patch", "handing over fields": "patch", "replacing": "update", "probing": "create", "deleting": "delete",
	}[doing]
	switch {
	case !apierrors.IsForbidden(err) || verbs == "" || ref.GroupKind() != (schema.GroupKind{Kind: object.SecretKind}):
		return withheld
	case doing == reading:
		return `: cannot get resource "secrets"`
	}
	return fmt.Sprintf(": cannot %s resource \"secrets\", or a policy denies it%s", verbs, withheld)
}

// unserved reports whether an error means that the kind is not served: either discovery does not have
// it, or the API server does not know the path of the request, because the definition was deleted
// after the cached discovery. If an object or its namespace is missing, the error has other causes.
func unserved(err error) bool {
	return meta.IsNoMatchError(err) || (apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse))
}

// replaced reports whether an API server rejected an apply because the object has another UID. The
// server reports that as an invalid change of the UID, which would read as a fault of the manifest.
func replaced(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(CausesOf(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// CausesOf returns the causes that an API server names for an error. A missing permission has none.
func CausesOf(err error) []metav1.StatusCause {
	var answer apierrors.APIStatus // which is no error type
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}

// RefusesChange reports whether an API server has refused a change by the validation of the kind, so that the same
// object may be accepted as a new one: a field is immutable, or a rule of a definition compares it with its old
// value. Validation names the fields, each with the type of its fault. A denial by an admission policy has the same
// code, but names neither. A webhook chooses what its denial contains, so a webhook that answers as validation does
// cannot be told apart from it.
func RefusesChange(err error) bool {
	causes := CausesOf(err)
	return apierrors.IsInvalid(err) && len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Field == "" || c.Type == "" })
}

// withheldError keeps an error for errors.As and hides its text.
type withheldError struct {
	text  string
	cause error
}

// Error returns the text that may be shown.
func (e *withheldError) Error() string { return e.text }

// Unwrap returns the hidden error.
func (e *withheldError) Unwrap() error { return e.cause }

// IsKindNotServed reports whether an error is a KindNotServedError.
func IsKindNotServed(err error) bool {
	var e *KindNotServedError
	return errors.As(err, &e)
}

// AlreadyExists returns the error of a creation for which the object exists already.
func AlreadyExists(ref Ref) error {
	return fmt.Errorf("%s: applying: %w", ref, apierrors.NewAlreadyExists(ResourceOf(ref), ref.Name))
}

// Conflict returns the error of a write whose precondition does not hold.
func Conflict(ref Ref, format string, args ...any) error {
	return apierrors.NewConflict(ResourceOf(ref), ref.Name, fmt.Errorf(format, args...))
}

// ResourceOf returns the resource of a kind for an error, with an approximate name.
func ResourceOf(ref Ref) schema.GroupResource {
	return schema.GroupResource{Group: ref.Group, Resource: strings.ToLower(ref.Kind)}
}
