package patch

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/program"
)

// of returns the manifest of an object as the change makes it.
func (c Change) of(o program.Object) (map[string]any, error) {
	kind := o.Identity.GroupVersionKind()
	if err := c.fits(kind.GroupKind(), o.Patchable); err != nil {
		return nil, err
	}
	before, err := normal(o.Manifest)
	if err != nil {
		return nil, faultf(Invalid, "the object cannot be read: %v", err)
	}
	after, err := c.carriedOut(kind, before)
	if err == nil {
		err = fitsType(kind, before, after)
	}
	if err != nil {
		return nil, withheld(o, err)
	}
	if err := keepsIdentity(before, after); err != nil {
		return nil, err
	}
	return after, keepsRights(kind.GroupKind(), before, after, o.Patchable)
}

// fits checks what can be told without the content of the object, so that nobody learns
// of that by trying.
func (c Change) fits(kind schema.GroupKind, open map[string]bool) error {
	named := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
	switch {
	case c.Kind != "" && named != kind:
		return faultf(Invalid, "the patch is for a %s, and the package renders a %s there", named, kind)
	case isDenied(kind) && len(open) == 0:
		return faultf(NotPatchable, "a patch changes no %s; to allow it, the package says in the policy of the object which fields are patchable", kind.Kind)
	}
	for i, o := range c.Operations {
		if why := o.invalid(); why != "" {
			return faultf(Invalid, "json6902[%d]: %s", i, why)
		}
		if kind == secretKind && o.reads() {
			return faultf(NotPatchable, "a patch of a Secret has no operation %s: it would show what the Secret holds", o.Op)
		}
	}
	return nil
}

// carriedOut returns an object with the change. The libraries that do it have panicked on
// changes that they should refuse; that must not end the reconcile of the resource.
func (c Change) carriedOut(kind schema.GroupVersionKind, before map[string]any) (after map[string]any, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			after, err = nil, faultf(Invalid, "it cannot be carried out: %v", problem)
		}
	}()
	switch {
	case c.Operations != nil:
		after, err = byOperations(before, c.Operations)
	case scheme.Scheme.Recognizes(kind):
		after, err = byStrategicMerge(kind, before, c.StrategicMerge)
	default:
		after, err = byMerge(before, c.StrategicMerge)
	}
	if err != nil {
		return nil, err
	}
	return after, notTooLarge(before, after)
}

// largest is how large a patch may make an object, as JSON. Whatever is longer belongs into
// the package.
const largest = 256 << 10

// notTooLarge checks that a change has not made an object too large: many patches of one
// could fill the memory.
func notTooLarge(before, after map[string]any) error {
	if depth := depthOf(after); depth > deepest && depth > depthOf(before) {
		return faultf(Invalid, "it makes the object deeper than %d levels", deepest)
	}
	text, err := json.Marshal(after)
	if err != nil {
		return faultf(Invalid, "%v", err)
	}
	if len(text) <= largest {
		return nil
	}
	if was, err := json.Marshal(before); err == nil && len(text) <= len(was) {
		return nil // the package makes it that large
	}
	return faultf(Invalid, "it makes the object larger than %d bytes", largest)
}

// byStrategicMerge merges a patch into an object of one of Kubernetes' own kinds,
// whose type says which lists are merged and by what.
func byStrategicMerge(kind schema.GroupVersionKind, before, patch map[string]any) (map[string]any, error) {
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, faultf(Invalid, "%v", err)
	}
	change, err := normal(patch)
	if err != nil {
		return nil, faultf(Invalid, "%v", err)
	}
	after, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(before), change, typed)
	if err != nil {
		return nil, faultf(Invalid, "strategic merge: %v", err)
	}
	return normal(after)
}

// byMerge merges a patch into an object of another kind: lists are replaced, and
// null removes.
func byMerge(before, patch map[string]any) (map[string]any, error) {
	if key := directive(patch); key != "" {
		return nil, faultf(Invalid, "%s is a directive for Kubernetes' own kinds; for other kinds a merge replaces lists, and json6902 changes their items", key)
	}
	return through(before, func(document []byte) ([]byte, error) {
		change, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(document, change)
	})
}

// directive returns a key of a patch that tells a strategic merge what to do, or "".
func directive(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name, _, _ := strings.Cut(key, "/")
			if slices.Contains([]string{"$patch", "$retainKeys", "$deleteFromPrimitiveList", "$setElementOrder"}, name) {
				return key
			}
			if inner := directive(v[key]); inner != "" {
				return inner
			}
		}
	case []any:
		for _, item := range v {
			if inner := directive(item); inner != "" {
				return inner
			}
		}
	}
	return ""
}

// copied is how much the operations of one patch may copy: each copy can double what
// is there.
const copied = 64 << 10

// byOperations carries out the operations of a JSON patch, all or none.
func byOperations(before map[string]any, operations []Operation) (map[string]any, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, faultf(Invalid, "%v", err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, faultf(Invalid, "json6902: %v", err)
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	options.AccumulatedCopySizeLimit = copied
	return through(before, func(document []byte) ([]byte, error) { return patch.ApplyWithOptions(document, options) })
}

// through changes an object as text. What fails then does not fit the object.
func through(before map[string]any, change func([]byte) ([]byte, error)) (map[string]any, error) {
	document, err := json.Marshal(before)
	if err != nil {
		return nil, faultf(Invalid, "%v", err)
	}
	changed, err := change(document)
	if err != nil {
		return nil, faultf(Conflict, "it does not fit what is rendered: %v", err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(changed, &out); err != nil || out == nil {
		return nil, faultf(Invalid, "what it makes of the object is no object")
	}
	return out, nil
}

// fitsType checks that an object of one of Kubernetes' own kinds has only the fields
// of its type, of the right types, so that a slip in a patch does not become a
// failure of the resource. One that had others before is for the API server to judge.
func fitsType(kind schema.GroupVersionKind, before, after map[string]any) error {
	if !scheme.Scheme.Recognizes(kind) {
		return nil
	}
	check := func(m map[string]any) error {
		typed, err := scheme.Scheme.New(kind)
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, typed, true)
	}
	if err := check(after); err != nil && check(before) == nil {
		return faultf(Invalid, "what it makes of the object is no %s: %v", kind.Kind, err)
	}
	return nil
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// withheld hides what a fault says about a Secret: it may quote the content.
func withheld(o program.Object, err error) error {
	if o.Identity.GroupVersionKind().GroupKind() != secretKind {
		return err
	}
	reason := Invalid
	if f, ok := errors.AsType[*fault](err); ok {
		reason = f.reason
	}
	return faultf(reason, "it does not fit the object (the message is withheld, it may quote the Secret)")
}

// normal returns data as it is read from JSON: integers are int64.
func normal(m map[string]any) (map[string]any, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(text, &out)
}
