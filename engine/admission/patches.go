package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/patch"
)

// Patches reviews Patches: the author of a Patch needs the permission to update the kinds that
// it names, because the operator applies it with its own permissions. It is safe for concurrent
// use.
type Patches struct {
	// Resource returns the resource of a kind. It errors with a NoMatchError for a kind that
	// the cluster does not serve.
	Resource func(context.Context, schema.GroupKind) (schema.GroupResource, error)
	// Allowed reports whether a user may do something.
	Allowed func(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error)
}

// Review is a Reviewer that says whether a Patch may be written. It denies a request if it cannot find out, whatever the failure policy
// of its configuration is, so it never errors.
func (p Patches) Review(ctx context.Context, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if err := p.review(ctx, r); err != nil {
		return &admissionv1.AdmissionResponse{UID: r.UID, Result: statusOf(err)}, nil
	}
	return &admissionv1.AdmissionResponse{UID: r.UID, Allowed: true}, nil
}

// deniedError is why a Patch may not be written, if its author can do something about it.
type deniedError struct{ text string }

// Error says why.
func (r *deniedError) Error() string { return r.text }

func deniedErrorf(format string, args ...any) error {
	return &deniedError{fmt.Sprintf(format, args...)}
}

func statusOf(err error) *metav1.Status {
	out := &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}
	if _, ok := errors.AsType[*deniedError](err); ok {
		out.Code, out.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return out
}

func (p Patches) review(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" {
		return nil
	}
	after, err := decode(r.Object)
	if err != nil {
		return err
	}
	before, err := decode(r.OldObject)
	if err != nil {
		return err
	}
	if r.Operation == admissionv1.Update && reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		return nil // labels and finalizers of a Patch have no effect on other objects
	}
	kinds, err := kindsOf(patch.Parse(after))
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := p.checkUpdateAllowed(ctx, kind, r); err != nil {
			return err
		}
	}
	return nil
}

// kindsOf returns the kinds that a Patch names, each once. It errors if a change names no kind.
func kindsOf(p patch.Patch) ([]schema.GroupKind, error) {
	if p.Invalid != "" {
		return nil, deniedErrorf("%s", p.Invalid)
	}
	var out []schema.GroupKind
	for _, c := range p.Changes {
		if c.Kind == "" {
			return nil, deniedErrorf("%s: set apiVersion and kind of the object: a Patch requires the permission to update that kind", c.Address)
		}
		if kind := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind(); !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// checkUpdateAllowed errors unless the user of a request may update a kind in the namespace of
// the request.
func (p Patches) checkUpdateAllowed(ctx context.Context, kind schema.GroupKind, r *admissionv1.AdmissionRequest) error {
	resource, err := p.Resource(ctx, kind)
	if meta.IsNoMatchError(err) {
		return deniedErrorf("the cluster does not serve %s", kind)
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", kind, err)
	}
	allowed, err := p.Allowed(ctx, authorizationv1.SubjectAccessReviewSpec{
		User: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups, Extra: extraOf(r.UserInfo),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.Namespace, Verb: "update", Group: resource.Group, Resource: resource.Resource, Version: "*",
		},
	})
	if err != nil {
		return fmt.Errorf("asking whether %s may update %s: %w", r.UserInfo.Username, resource, err)
	}
	if !allowed {
		return deniedErrorf("patching a %s requires the permission to update %s in namespace %s", kind.Kind, resource, r.Namespace)
	}
	return nil
}

func extraOf(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	out := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		out[key] = authorizationv1.ExtraValue(values)
	}
	return out
}

// decode returns an object of a request, or an empty one if the request has none.
func decode(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if len(raw.Raw) == 0 {
		return u, nil
	}
	if err := u.UnmarshalJSON(raw.Raw); err != nil {
		return nil, fmt.Errorf("reading the Patch: %w", err)
	}
	return u, nil
}
