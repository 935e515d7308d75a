package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
)

// An operation is one of a JSON patch that adds fields, or replaces labels.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// unstable is the warning about a package whose defaults or labels change when they are computed again. The
// API server may call a webhook twice, and does so with every later change of the resource.
const unstable = "the package computes other labels or defaults each time, so none is set"

// Mutate adds to a custom resource the defaults of its package that the API server does not know, and sets the labels
// that the package computes. It never changes a field that is there, and refuses nothing: what is invalid stays as it
// is, and is refused by Validate. It errors if the package could not be evaluated, so that what to add is not known.
func (r *Resources) Mutate(ctx context.Context, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	c, end, err := r.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	defer end()
	if c == nil || len(c.unreadable) > 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	review, faults, err := c.review(ctx, c.session)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	patch := additions(c.after, review)
	if len(patch) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	stable, err := c.isStable(ctx, review)
	if err != nil {
		return nil, err
	}
	if !stable {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{unstable}}, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: text, PatchType: new(admissionv1.PatchTypeJSONPatch)}, nil
}

// isStable reports whether a second review of the resource would add nothing more.
func (c *change) isStable(ctx context.Context, review program.Review) (bool, error) {
	after := c.after.DeepCopy()
	complete(after, review)
	session, err := c.Session(ctx, after)
	if err != nil {
		return false, err
	}
	again, faults, err := c.review(ctx, session)
	if err != nil {
		return false, err
	}
	return len(faults) == 0 && len(additions(after, again)) == 0, nil
}

// complete makes of a resource what the additions of a review make of it.
func complete(u *unstructured.Unstructured, review program.Review) {
	u.Object["spec"] = merged(u.Object["spec"], review.Spec)
	if len(review.Labels) > 0 {
		labels := maps.Clone(u.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, review.Labels)
		u.SetLabels(labels)
	}
}

// merged returns a value with the fields of another one that it does not have.
func merged(has, defaults any) any {
	switch v := has.(type) {
	case nil:
		return defaults
	case map[string]any:
		from, _ := defaults.(map[string]any)
		out := maps.Clone(v)
		for name, value := range from {
			if own, there := v[name]; there {
				value = keep(own, value)
			}
			out[name] = value
		}
		return out
	case []any:
		from, _ := defaults.([]any)
		if len(from) != len(v) {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = keep(v[i], from[i])
		}
		return out
	}
	return has
}

// keep is merged for a field that is there: null stays what it is.
func keep(has, defaults any) any {
	if has == nil {
		return nil
	}
	return merged(has, defaults)
}

// additions returns the operations that add to a resource what a review says.
func additions(u *unstructured.Unstructured, review program.Review) []operation {
	var out []operation
	if spec, has := u.Object["spec"]; has {
		out = missing(out, "/spec", spec, review.Spec)
	} else if len(review.Spec) > 0 {
		out = append(out, operation{"add", "/spec", review.Spec})
	}
	labels := u.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(review.Labels)) {
		value, has := labels[key]
		if has && value == review.Labels[key] {
			continue
		}
		if len(labels) == 0 {
			labels = map[string]string{"": ""} // the next one finds the map
			out = append(out, operation{"add", "/metadata/labels", map[string]any{}})
		}
		out = append(out, operation{"add", "/metadata/labels" + pointer(key), review.Labels[key]})
	}
	return out
}

// missing adds operations for the fields of a value that another one has and it has not.
func missing(out []operation, path string, has, defaults any) []operation {
	switch v := has.(type) {
	case map[string]any:
		from, _ := defaults.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if own, there := v[name]; there {
				out = missing(out, path+pointer(name), own, from[name])
				continue
			}
			out = append(out, operation{"add", path + pointer(name), from[name]})
		}
	case []any:
		from, _ := defaults.([]any)
		if len(from) != len(v) {
			return out
		}
		for i := range v {
			out = missing(out, path+pointer(strconv.Itoa(i)), v[i], from[i])
		}
	}
	return out
}

// pointer returns a name as a part of a JSON pointer.
func pointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
