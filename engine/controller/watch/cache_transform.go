package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime/debug"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// Any user who can write a label, or a custom resource, decides what a cache holds. So a cache keeps only
// small objects whole. Of large ones it keeps what events and deletions need, and a reader gets the
// rest from the API server, once for each version: see largeObjects.
const (
	// maxCachedSize is the size up to which a cache keeps an object whole, and maxUnmarkedSize the
	// same for an object without an owner annotation. Most objects are below 10 KiB.
	maxCachedSize, maxUnmarkedSize = 64 << 10, 4 << 10
	// maxMarkLength is the length up to which a mark of a large object is kept.
	maxMarkLength = 1 << 10
	// maxLabels is the length up to which the labels of a large custom resource are kept, all or none.
	maxLabels = 4 << 10
)

// strippedField marks an object as stripped. No API serves a field of such a name; the objects of one
// that did would be read live.
const strippedField = "~stripped"

// marks are the engine's annotations of objects.
var marks = []string{ownership.OwnerAnnotation, ownership.OwnerUIDAnnotation, ownership.ComponentAnnotation, ownership.AfterAnnotation, ownership.DeleteAnnotation, ownership.AdoptAnnotation, ownership.AppliedAnnotation}

// stripObject is the transform of a cache of owned objects.
func stripObject(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a deletion that the watch has missed
	}
	limit := limitOf(u)
	if sizeOf(u.Object, limit) <= limit {
		ownership.CompactManagedFields(u)
		return u, nil
	}
	out := stripped(u)
	kept := map[string]string{}
	keepMarks(kept, u, marks...)
	out.SetAnnotations(kept)
	if label, has := u.GetLabels()[ownership.OwnerLabel]; has {
		out.SetLabels(map[string]string{ownership.OwnerLabel: label})
	}
	return out, nil
}

// keepMarks copies some annotations that are no longer than a mark may be.
func keepMarks(into map[string]string, from *unstructured.Unstructured, marks ...string) {
	all := from.GetAnnotations()
	for _, mark := range marks {
		if v, has := all[mark]; has && len(v) <= maxMarkLength {
			into[mark] = v
		}
	}
}

// sizeOfTexts returns the length of all keys and values.
func sizeOfTexts(all map[string]string) int {
	n := 0
	for key, value := range all {
		n += len(key) + len(value)
	}
	return n
}

// stripFieldSets is the transform of a cache of inputs: no package reads their managed fields. It keeps who has written
// when, so that a history can say who has changed one.
func stripFieldSets(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	ownership.StripFieldSets(u)
	return u, nil
}

// limitOf returns the size up to which a cache keeps an object whole.
func limitOf(u *unstructured.Unstructured) int {
	if _, _, marked := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation]); marked {
		return maxCachedSize
	}
	return maxUnmarkedSize
}

// stripResource is the transform of a cache of custom resources.
func stripResource(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	if sizeOf(u.Object, maxCachedSize) <= maxCachedSize {
		ownership.CompactManagedFields(u)
		return u, nil
	}
	out := stripped(u)
	// The digest makes a change of the spec, a label or an annotation an event, whatever the generation.
	text, err := json.Marshal([]any{u.GetLabels(), u.GetAnnotations(), u.Object["spec"]})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	kept := map[string]string{strippedField: hex.EncodeToString(sum[:])}
	keepMarks(kept, u, reconcile.AnnotationPaused, reconcile.AnnotationRevisionPin)
	out.SetAnnotations(kept)
	if labels := u.GetLabels(); sizeOfTexts(labels) <= maxLabels { // canaries select by them
		out.SetLabels(labels)
	}
	if s, has := u.Object["status"].(map[string]any); has {
		out.Object["status"] = status.Outline(s)
	}
	return out, nil
}

// TransformResource returns the transform of a cache of custom resources. Of a large resource it keeps
// only what events need; Caches.Resources reads the rest.
func TransformResource(log logr.Logger) toolscache.TransformFunc { return guarded(log, stripResource) }

// guarded returns a transform that strips an object if the given one panics on it: a panic in the
// goroutine of an informer would end the process.
func guarded(log logr.Logger, transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (kept any, err error) {
		defer func() {
			u, is := object.(*unstructured.Unstructured)
			if cause := recover(); cause != nil && is {
				log.Error(nil, "the operator panicked over an object, and keeps nothing of it in its cache", "object", cluster.RefOf(u).String(), "stack", string(debug.Stack()))
				kept, err = stripped(u), nil
			}
		}()
		return transform(object)
	}
}

// stripped returns the part of a large object that every cache keeps.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := cluster.RefOf(u).Object(u.GetUID())
	out.Object[strippedField] = true
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetGeneration(u.GetGeneration())
	out.SetCreationTimestamp(u.GetCreationTimestamp())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())
	if slices.Contains(u.GetFinalizers(), cluster.TeardownFinalizer) {
		out.SetFinalizers([]string{cluster.TeardownFinalizer})
	}
	return out
}

// isStripped reports whether a cache has kept only a part of an object. Nothing may be decided by
// the absence of a field from such an object.
func isStripped(u *unstructured.Unstructured) bool {
	_, is := u.Object[strippedField]
	return is
}

// sizeOf estimates the memory that data takes, in bytes. It stops counting above a limit.
func sizeOf(data any, limit int) int {
	const entry = 48 // bytes for each item of a map or slice
	switch v := data.(type) {
	case string:
		return len(v)
	case map[string]any:
		n := 0
		for key, item := range v {
			if n += entry + len(key) + sizeOf(item, limit-n); n > limit {
				break
			}
		}
		return n
	case []any:
		n := 0
		for _, item := range v {
			if n += entry + sizeOf(item, limit-n); n > limit {
				break
			}
		}
		return n
	}
	return 0
}
