package watch

import (
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/dryrun/diff"
	jsonpath "operetta.dev/engine/fieldpath"
	"operetta.dev/engine/history"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/redact"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// History returns how a history reads the objects of caches.
func (s Shared) History() history.Objects {
	return history.Objects{Changes: s.unpacked.changes, Size: memoryOf}
}

// memoryOf returns about what an object of a cache takes in memory.
func memoryOf(u *unstructured.Unstructured) int {
	const packedMetadata = 1 << 10
	if rest, is := u.Object[packedField].(string); is {
		return len(rest) + packedMetadata
	}
	return sizeOf(u.Object, maxCachedSize)
}

// changes returns which fields differ between the two states of an object in an event, by who has changed them. Without an
// earlier state, it says who has written the object. It returns none for an object of which a cache has only a part. The
// reconcile that follows reads the object as it is, and the one before has read what it was.
func (o *unpackedObjects) changes(e history.Event) []history.Change {
	if isStripped(e.After) || e.Before != nil && isStripped(e.Before) {
		return nil
	}
	var a *unstructured.Unstructured
	var err error
	if e.Before != nil {
		if a, err = entire(e.Before, o.getOld); err != nil {
			return nil
		}
	}
	b, err := entire(e.After, o.get)
	switch {
	case err != nil:
		return nil
	case a == nil:
		return creators(b)
	}
	paths := diff.Paths(a, b)
	if e.Cause == history.Resource {
		// The status of a resource triggers nothing: it is the engine's own.
		paths = slices.DeleteFunc(paths, func(p diff.ChangedPath) bool { return len(p.Parts) > 0 && p.Parts[0].Field == "status" })
	}
	return byWriter(paths, writersOf(a, b), b.Object)
}

// entire returns all of an object that a cache may have packed.
func entire(u *unstructured.Unstructured, unpack func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if !isPacked(u) {
		return u, nil
	}
	return unpack(u)
}

// creators returns who has written a new object, the last one first.
func creators(u *unstructured.Unstructured) []history.Change {
	managers := ownership.ManagedFields(u)
	if len(managers) == 0 {
		return nil
	}
	newest := slices.MaxFunc(managers, func(a, b metav1.ManagedFieldsEntry) int { return timeOf(a).Compare(timeOf(b)) })
	return []history.Change{changeOf(newest)}
}

func timeOf(m metav1.ManagedFieldsEntry) time.Time {
	if m.Time == nil {
		return time.Time{}
	}
	return m.Time.Time
}

func changeOf(m metav1.ManagedFieldsEntry) history.Change {
	return history.Change{Manager: history.Truncate(redact.Printable(m.Manager)), Operation: string(m.Operation)}
}

// A writer is a field manager, with the fields that it owns.
type writer struct {
	metav1.ManagedFieldsEntry

	// set returns the fields, or nil if they are not known: most writers are never asked.
	set func() *fieldpath.Set
	// wrote says that its entry has changed, so it has written.
	wrote bool
}

// writersOf returns the managers of an object, those first that have written since an earlier state, and then the last one
// first. The times of managed fields are in seconds, so who has written twice in a second may seem not to have.
func writersOf(before, after *unstructured.Unstructured) []writer {
	was := ownership.ManagedFields(before)
	var out []writer
	for _, m := range ownership.ManagedFields(after) {
		same := func(o metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(o, m) }
		out = append(out, writer{m, sync.OnceValue(func() *fieldpath.Set { return ownership.FieldSet(m) }), !slices.ContainsFunc(was, same)})
	}
	slices.SortStableFunc(out, func(a, b writer) int {
		if a.wrote != b.wrote {
			return map[bool]int{true: -1, false: 1}[a.wrote]
		}
		return timeOf(b.ManagedFieldsEntry).Compare(timeOf(a.ManagedFieldsEntry))
	})
	return out
}

// whoChanged returns the manager that has changed a field. No manager owns a field that is gone, and a cache keeps no
// fields of the managers of an input: in these cases, if only one manager has written, it was that one.
func whoChanged(p diff.ChangedPath, writers []writer, object map[string]any) history.Change {
	tracked := false
	var around *writer
	for i, w := range writers {
		if w.set() == nil {
			continue
		}
		tracked = true
		switch ownership.ShareOf(w.set(), object, p.Parts) {
		case ownership.SharesField:
			return changeOf(w.ManagedFieldsEntry)
		case ownership.SharesWhole, ownership.SharesPart:
			if around == nil {
				around = &writers[i]
			}
		case ownership.NoShare:
		}
	}
	if around != nil {
		return changeOf(around.ManagedFieldsEntry)
	}
	_, there := jsonpath.Lookup(object, p.Parts)
	if len(writers) > 0 && writers[0].wrote && (len(writers) == 1 || !writers[1].wrote) && (!tracked || !there) {
		return changeOf(writers[0].ManagedFieldsEntry)
	}
	return history.Change{}
}

// byWriter returns paths by who has changed them, in the order of the paths.
func byWriter(paths []diff.ChangedPath, writers []writer, object map[string]any) []history.Change {
	var out []history.Change
	for _, p := range paths {
		by := whoChanged(p, writers, object)
		at := slices.IndexFunc(out, func(c history.Change) bool { return c.Manager == by.Manager && c.Operation == by.Operation })
		if at < 0 {
			out = append(out, by)
			at = len(out) - 1
		}
		if len(out[at].Fields) >= history.MaxFields {
			out[at].More++
			continue
		}
		out[at].Fields = append(out[at].Fields, history.Truncate(p.Text))
	}
	return out
}
