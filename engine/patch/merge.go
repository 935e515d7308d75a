package patch

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/program"
)

// of returns the manifest of an object as the change makes it.
func (c Change) of(o program.Object) (map[string]any, error) {
	before, err := normal(o.Manifest)
	if err != nil {
		return nil, faultf(Invalid, "the object cannot be read: %v", err)
	}
	var after map[string]any
	switch {
	case c.JSON6902 != nil:
		after, err = byOperations(before, c.JSON6902)
	case scheme.Scheme.Recognizes(o.Identity.GroupVersionKind()):
		after, err = byStrategicMerge(o.Identity.GroupVersionKind(), before, c.StrategicMerge)
	default:
		after, err = byMerge(before, c.StrategicMerge)
	}
	if err == nil {
		err = fitsType(o.Identity.GroupVersionKind(), before, after)
	}
	if err != nil {
		return nil, withheld(o, err)
	}
	return after, keepsIdentity(before, after)
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
const copied = 1 << 20

// byOperations carries out the operations of a JSON patch, all or none.
func byOperations(before map[string]any, operations []any) (map[string]any, error) {
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

// fixed are the fields that a patch must not change: they say which object it is, to
// whom it belongs, and in which state it was written.
var fixed = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "name"},
	{"metadata", "generateName"},
	{"metadata", "namespace"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "ownerReferences"},
	{"metadata", "managedFields"},
}

// keepsIdentity checks that a change leaves alone what must not change.
func keepsIdentity(before, after map[string]any) error {
	for _, path := range fixed {
		if !equality.Semantic.DeepEqual(lookup(before, path), lookup(after, path)) {
			return faultf(Invalid, "a patch must not change %s", strings.Join(path, "."))
		}
	}
	return nil
}

func lookup(v any, path []string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// withheld hides what a fault says about a Secret: it may quote the content.
func withheld(o program.Object, err error) error {
	if o.Identity.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
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
