package watch

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// recent remembers the objects that were used last, up to a size of all of them together. A number
// of objects would limit nothing, as an object may be of any size.
type recent struct {
	limit int

	mu    sync.Mutex
	items map[cluster.Ref]*list.Element
	order list.List // of recentItem, the least recently used first
	size  int
}

// A recentItem is one remembered object.
type recentItem struct {
	ref    cluster.Ref
	object *unstructured.Unstructured
	size   int
}

// newRecent returns an empty recent with a limit in bytes.
func newRecent(limit int) *recent {
	return &recent{limit: limit, items: map[cluster.Ref]*list.Element{}}
}

// get returns an object, or nil.
func (r *recent) get(ref cluster.Ref) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.items[ref]
	if at == nil {
		return nil
	}
	r.order.MoveToBack(at)
	return itemOf(at).object
}

// add remembers an object instead of the earlier one of its name. It remembers neither if the object is
// larger than the limit.
func (r *recent) add(ref cluster.Ref, u *unstructured.Unstructured) {
	size := sizeOf(u.Object, r.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(ref)
	if size > r.limit {
		return
	}
	r.items[ref] = r.order.PushBack(recentItem{ref, u, size})
	for r.size += size; r.size > r.limit; {
		r.forget(itemOf(r.order.Front()).ref)
	}
}

// remove forgets an object.
func (r *recent) remove(ref cluster.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(ref)
}

func (r *recent) forget(ref cluster.Ref) {
	if at := r.items[ref]; at != nil {
		r.order.Remove(at)
		r.size -= itemOf(at).size
		delete(r.items, ref)
	}
}

func itemOf(at *list.Element) recentItem {
	item, _ := at.Value.(recentItem)
	return item
}
