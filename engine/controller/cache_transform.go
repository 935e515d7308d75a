package controller

import (
	"context"
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
	"operetta.dev/engine/status"
)

// A cache has what anybody writes who may write a label, or a custom resource. So it keeps
// the whole of small objects alone; of others it keeps what events and deletions go by, and
// whoever needs the rest reads it from the API server, once for each version.
const (
	// maxCachedSize is how large an object is at most that a cache keeps as it is, and
	// maxUnmarkedSize one that does not say whose it is. Most are below 10 KiB.
	maxCachedSize, maxUnmarkedSize = 64 << 10, 4 << 10
	// keptMark is how long a mark is at most that is kept of a large object.
	keptMark = 1 << 10
	// largeObjectsSize is how much of large objects is remembered.
	largeObjectsSize = 64 << 20
)

// strippedField is where an object says that it was stripped. No API serves a field of
// such a name; one that did would cost reads.
const strippedField = "~stripped"

// marks are the annotations of the engine.
var marks = []string{ownership.OwnerAnnotation, ownership.UIDMark, ownership.ComponentMark, ownership.AfterMark, ownership.DeleteMark, ownership.AdoptMark, ownership.AppliedMark}

// stripObject is the transformation of a cache of objects that have owners.
func stripObject(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a deletion that the watch has missed
	}
	limit := limitOf(u)
	if sizeOf(u.Object, limit) <= limit {
		return u, nil
	}
	out := stripped(u)
	kept := map[string]string{}
	for _, mark := range marks {
		if v, has := u.GetAnnotations()[mark]; has && len(v) <= keptMark {
			kept[mark] = v
		}
	}
	out.SetAnnotations(kept)
	if label, has := u.GetLabels()[ownership.OwnerLabel]; has {
		out.SetLabels(map[string]string{ownership.OwnerLabel: label})
	}
	return out, nil
}

// limitOf returns how large an object is at most that a cache keeps as it is.
func limitOf(u *unstructured.Unstructured) int {
	if _, _, marked := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation]); marked {
		return maxCachedSize
	}
	return maxUnmarkedSize
}

// stripResource is the transformation of a cache of custom resources.
func stripResource(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok || sizeOf(u.Object, maxCachedSize) <= maxCachedSize {
		return object, nil
	}
	out := stripped(u)
	// A change of them is noticed, whatever they are.
	text, err := json.Marshal([]any{u.GetLabels(), u.GetAnnotations()})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	out.SetAnnotations(map[string]string{strippedField: hex.EncodeToString(sum[:])})
	if s, has := u.Object["status"].(map[string]any); has {
		out.Object["status"] = status.Outline(s)
	}
	return out, nil
}

// guarded returns a transformation that keeps nothing of what makes it panic: it is one of an
// informer's goroutine, and would end the process.
func guarded(log logr.Logger, transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (kept any, err error) {
		defer func() {
			u, is := object.(*unstructured.Unstructured)
			if cause := recover(); cause != nil && is {
				log.Error(nil, "the operator has a fault, and keeps nothing of an object", "object", cluster.RefOf(u).String(), "stack", string(debug.Stack()))
				kept, err = stripped(u), nil
			}
		}()
		return transform(object)
	}
}

// stripped returns what is kept of every large object.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{strippedField: true}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetGeneration(u.GetGeneration())
	out.SetCreationTimestamp(u.GetCreationTimestamp())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())
	if slices.Contains(u.GetFinalizers(), cluster.TeardownFinalizer) {
		out.SetFinalizers([]string{cluster.TeardownFinalizer})
	}
	return out
}

// isStripped reports whether an object is what a cache has kept of a large one. Nothing may
// be decided by what it does not have.
func isStripped(u *unstructured.Unstructured) bool {
	_, is := u.Object[strippedField]
	return is
}

// sizeOf returns about how much memory data takes; it stops counting above a limit.
func sizeOf(data any, limit int) int {
	const entry = 48 // what a map or a slice takes for each
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

// largeObjects remembers large objects that were read, the last ones, so that one that does not
// change is read once.
type largeObjects struct{ last *recent }

func newLargeObjects() *largeObjects { return &largeObjects{newRecent(largeObjectsSize)} }

// get returns the whole of an object from a cache, which it reads if it has to; nil is none.
func (w *largeObjects) get(ctx context.Context, cached *unstructured.Unstructured, read func(context.Context, cluster.Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if cached == nil || !isStripped(cached) {
		return cached, nil
	}
	ref := cluster.RefOf(cached)
	if known := w.find(ref, cached.GetResourceVersion()); known != nil {
		return known.DeepCopy(), nil
	}
	u, err := read(ctx, ref)
	if err != nil || u == nil {
		w.drop(ref)
		return nil, err
	}
	w.note(u)
	return u, nil
}

func (w *largeObjects) find(ref cluster.Ref, version string) *unstructured.Unstructured {
	known := w.last.get(ref)
	if known == nil || known.GetResourceVersion() != version {
		return nil
	}
	return known
}

// note remembers a version of an object if no cache has it. What one has would only drive
// others out.
func (w *largeObjects) note(u *unstructured.Unstructured) {
	if sizeOf(u.Object, largeObjectsSize) > limitOf(u) {
		w.last.add(cluster.RefOf(u), u.DeepCopy())
	}
}

// drop forgets an object.
func (w *largeObjects) drop(ref cluster.Ref) { w.last.remove(ref) }
