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
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// applyTo returns the manifest of an object with the change.
func (c Change) applyTo(o program.Object) (map[string]any, error) {
	kind := o.Identity.GroupVersionKind
	if err := c.checkAllowed(kind.GroupKind(), o.Patchable); err != nil {
		return nil, err
	}
	before, err := normalizeJSON(o.Manifest)
	if err != nil {
		return nil, changeErrorf(Invalid, "the object cannot be read: %v", err)
	}
	after, err := c.patchManifest(kind, before)
	if err == nil {
		err = checkType(kind, before, after)
	}
	if err != nil {
		return nil, redactSecretError(o, err)
	}
	if err := checkIdentity(before, after); err != nil {
		return nil, err
	}
	return after, checkPrivileges(kind.GroupKind(), before, after, o.Patchable)
}

// checkAllowed makes the checks that do not depend on the content of the object. They come
// first, so that a user cannot learn the content by trying.
func (c Change) checkAllowed(kind schema.GroupKind, open map[string]bool) error {
	named := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
	switch {
	case c.Kind != "" && named != kind:
		return changeErrorf(Invalid, "the patch is for a %s, and the package renders a %s there", named, kind)
	case isDeniedKind(kind) && len(open) == 0:
		return changeErrorf(NotPatchable, "a patch must not change a %s; to allow it, list the patchable fields in the object's policy in the package", kind.Kind)
	}
	for i, o := range c.Operations {
		if why := o.invalid(); why != "" {
			return changeErrorf(Invalid, "json6902[%d]: %s", i, why)
		}
		if object.MayBeSecret(kind.Kind) && o.revealsContent() {
			return changeErrorf(NotPatchable, "a patch of a Secret must not use the operation %s: it would reveal the content of the Secret", o.Op)
		}
	}
	return nil
}

// patchManifest returns a manifest with the change. The patch libraries have panicked on changes
// that they should refuse; such a panic must not end the reconcile of the resource.
func (c Change) patchManifest(kind schema.GroupVersionKind, before map[string]any) (after map[string]any, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			after, err = nil, changeErrorf(Invalid, "the patch library failed: %v", problem)
		}
	}()
	switch {
	case c.Operations != nil:
		after, err = applyJSONPatch(before, c.Operations)
	case scheme.Scheme.Recognizes(kind):
		after, err = applyStrategicMerge(kind, before, c.StrategicMerge)
	default:
		after, err = applyMergePatch(before, c.StrategicMerge)
	}
	if err != nil {
		return nil, err
	}
	return after, checkSize(before, after)
}

// maxObjectSize bounds the size that a patch may give an object, in bytes of JSON. Larger
// content belongs into the package.
const maxObjectSize = 256 << 10

// checkSize errors if a change has made an object too large or too deep: many patches could
// fill the memory.
func checkSize(before, after map[string]any) error {
	if depth := shapeOf(after).depth; depth > maxDepth && depth > shapeOf(before).depth {
		return changeErrorf(Invalid, "it nests the object deeper than %d levels", maxDepth)
	}
	text, err := json.Marshal(after)
	if err != nil {
		return changeErrorf(Invalid, "%v", err)
	}
	if len(text) <= maxObjectSize {
		return nil
	}
	if was, err := json.Marshal(before); err == nil && len(text) <= len(was) {
		return nil // it was that large before the change
	}
	return changeErrorf(Invalid, "it makes the object larger than %d bytes", maxObjectSize)
}

// applyStrategicMerge merges a patch into an object of a built-in kind, whose Go type says
// which lists are merged and by which key.
func applyStrategicMerge(kind schema.GroupVersionKind, before, patch map[string]any) (map[string]any, error) {
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, changeErrorf(Invalid, "%v", err)
	}
	change, err := normalizeJSON(patch)
	if err != nil {
		return nil, changeErrorf(Invalid, "%v", err)
	}
	after, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(before), change, typed)
	if err != nil {
		return nil, changeErrorf(Invalid, "strategic merge: %v", err)
	}
	return normalizeJSON(after)
}

// applyMergePatch merges a patch into an object of another kind: lists are replaced, and null
// removes.
func applyMergePatch(before, patch map[string]any) (map[string]any, error) {
	if key := directive(patch); key != "" {
		return nil, changeErrorf(Invalid, "%s is a directive for built-in kinds; for other kinds a merge replaces lists, and json6902 changes their items", key)
	}
	return patchJSON(before, func(document []byte) ([]byte, error) {
		change, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(document, change)
	})
}

// directive returns the first key of a patch that is a directive of strategic merge, or "".
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

// maxCopySize bounds the bytes that the operations of one patch may copy: each copy can double
// the size of the object.
const maxCopySize = 64 << 10

// applyJSONPatch applies the operations of a JSON patch, all or none.
func applyJSONPatch(before map[string]any, operations []Operation) (map[string]any, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, changeErrorf(Invalid, "%v", err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, changeErrorf(Invalid, "json6902: %v", err)
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	options.AccumulatedCopySizeLimit = maxCopySize
	return patchJSON(before, func(document []byte) ([]byte, error) { return patch.ApplyWithOptions(document, options) })
}

// patchJSON applies a change to an object as JSON. An error of the change means that it does
// not fit the object.
func patchJSON(before map[string]any, change func([]byte) ([]byte, error)) (map[string]any, error) {
	document, err := json.Marshal(before)
	if err != nil {
		return nil, changeErrorf(Invalid, "%v", err)
	}
	changed, err := change(document)
	if err != nil {
		return nil, changeErrorf(Conflict, "it does not fit what is rendered: %v", err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(changed, &out); err != nil || out == nil {
		return nil, changeErrorf(Invalid, "the result is not an object")
	}
	return out, nil
}

// checkType errors if an object of a built-in kind has an unknown field or a value of the wrong
// type, so that a mistake in a patch does not become a failure of the resource. If the object
// was already invalid before the change, the decision is left to the API server.
func checkType(kind schema.GroupVersionKind, before, after map[string]any) error {
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
		return changeErrorf(Invalid, "the result is not a valid %s: %v", kind.Kind, err)
	}
	return nil
}

// redactSecretError replaces the message of an error about a Secret, which may quote the
// content.
func redactSecretError(o program.Object, err error) error {
	if !object.MayBeSecret(o.Identity.Kind) {
		return err
	}
	reason := Invalid
	if f, ok := errors.AsType[*changeError](err); ok {
		reason = f.reason
	}
	return changeErrorf(reason, "it does not fit the object (the message is withheld, it may quote the Secret)")
}

// normalizeJSON returns data in the form in which it is decoded from JSON: integers are int64.
func normalizeJSON(m map[string]any) (map[string]any, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(text, &out)
}
