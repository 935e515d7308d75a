package watch

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

// As maps, an object takes about five times the memory of the bytes that it came as, and a fleet has
// thousands of objects that no reconcile reads between two reconciles. So a cache keeps an object packed: what
// the handlers of events read, and the rest as bytes. A reader unpacks it.

// packedField has the rest of a packed object, in the JSON or CBOR as which it came if it was packed so, or else in CBOR, and fieldSetsField the field sets of its managed
// fields, which many objects share. No API serves fields of such names.
const (
	packedField    = "~packed"
	fieldSetsField = "~fieldSets"
)

// cacheFields are the fields by which a cache knows what it has packed or stripped.
var cacheFields = []string{packedField, fieldSetsField, strippedField}

// unpackedMetadata are the fields of the metadata that a packed object has as they are, besides the marks. By its
// finalizers, a deletion sees whether an object has a teardown of its own.
var unpackedMetadata = []string{"name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "ownerReferences", "finalizers"}

// unpackedMarks are the annotations that a packed object has as they are.
var unpackedMarks = []string{ownership.OwnerAnnotation, ownership.OwnerUIDAnnotation}

// unpackedObjectsSize limits the size of all unpacked objects that are remembered, by sizeOf, which is about half
// of what they take. A rollout reads its objects several times, and few rollouts run at the same time.
const unpackedObjectsSize = 1 << 20

// packed returns an object as a cache keeps it: packed, or as it is if it is stripped, packed already, or
// has something that CBOR cannot say. It changes the given object.
func packed(u *unstructured.Unstructured) *unstructured.Unstructured {
	if isStripped(u) || isPacked(u) {
		return u
	}
	sets := ownership.TakeFieldSets(u)
	rest, err := direct.Marshal(u.Object)
	if err != nil {
		ownership.PutFieldSets(u, sets)
		return u
	}
	meta, _ := u.Object["metadata"].(map[string]any)
	kept := map[string]any{}
	copyFields(kept, meta, unpackedMetadata)
	if annotations, has := meta["annotations"].(map[string]any); has {
		marks := map[string]any{}
		copyFields(marks, annotations, unpackedMarks)
		kept["annotations"] = marks
	}
	out := map[string]any{"metadata": kept, packedField: string(rest)}
	copyFields(out, u.Object, []string{"apiVersion", "kind"})
	if len(sets) > 0 {
		out[fieldSetsField] = sets
	}
	return &unstructured.Unstructured{Object: out}
}

// copyFields copies the fields of some names that there are.
func copyFields(to, from map[string]any, names []string) {
	for _, name := range names {
		if v, has := from[name]; has {
			to[name] = v
		}
	}
}

// isPacked reports whether an object is as packed has made it.
func isPacked(u *unstructured.Unstructured) bool {
	_, is := u.Object[packedField]
	return is
}

// unpacked returns an object as it was before it was packed, or as it is if it is not packed. It errors
// if the bytes cannot be read.
func unpacked(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !isPacked(u) {
		return u, nil
	}
	rest, _ := u.Object[packedField].(string)
	sets, _ := u.Object[fieldSetsField].([]any)
	out, err := unpackedRest(rest)
	if err != nil {
		return nil, cluster.WrapError(cluster.RefOf(u), "unpacking", err)
	}
	// The items of a list do not say what they are.
	copyFields(out.Object, u.Object, []string{"apiVersion", "kind"})
	ownership.PutFieldSets(out, sets)
	return out, nil
}

// unpackedRest returns what packed or packedBytes has made bytes of. No map of CBOR begins as an object of JSON does, and what packed has
// made has no tag.
func unpackedRest(rest string) (*unstructured.Unstructured, error) {
	if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, selfDescribed) {
		return whole([]byte(rest))
	}
	out := &unstructured.Unstructured{}
	return out, direct.Unmarshal([]byte(rest), &out.Object)
}

// unpackedObjects remembers the objects that were unpacked last.
type unpackedObjects struct{ last *recent }

func newUnpackedObjects() *unpackedObjects { return &unpackedObjects{newRecent(unpackedObjectsSize)} }

// get returns the whole of a packed object. Others may have the same one, so it must not be changed.
func (o *unpackedObjects) get(cached *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := cluster.RefOf(cached)
	if known := o.known(ref, cached); known != nil {
		return known, nil
	}
	u, err := unpacked(cached)
	if err == nil {
		o.last.add(ref, u)
	}
	return u, err
}

// getOld is get for an object that is not read again.
func (o *unpackedObjects) getOld(cached *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if known := o.known(cluster.RefOf(cached), cached); known != nil {
		return known, nil
	}
	return unpacked(cached)
}

// known returns an object that was unpacked lately, or nil.
func (o *unpackedObjects) known(ref cluster.Ref, cached *unstructured.Unstructured) *unstructured.Unstructured {
	known := o.last.get(ref)
	if known == nil || known.GetUID() != cached.GetUID() || known.GetResourceVersion() != cached.GetResourceVersion() {
		return nil
	}
	return known
}
