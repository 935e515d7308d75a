package controller

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// recent remembers the objects that were used last, up to a size of all of them: an object
// may be of any size, so a number of them would bound nothing.
type recent struct {
	limit int

	mu    sync.Mutex
	of    map[cluster.Ref]*list.Element
	order list.List // of recentItem, the least recently used first
	size  int
}

// recentItem is one of them.
type recentItem struct {
	ref    cluster.Ref
	object *unstructured.Unstructured
	size   int
}

// newRecent returns one that remembers nothing yet, and objects of so many bytes at most.
func newRecent(limit int) *recent {
	return &recent{limit: limit, of: map[cluster.Ref]*list.Element{}}
}

// get returns an object, or nil.
func (r *recent) get(ref cluster.Ref) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.of[ref]
	if at == nil {
		return nil
	}
	r.order.MoveToBack(at)
	return valueOf(at).object
}

// add remembers an object in the place of another one of its name. One that is larger than
// the limit is not remembered.
func (r *recent) add(ref cluster.Ref, u *unstructured.Unstructured) {
	size := sizeOf(u.Object, r.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(ref)
	if size > r.limit {
		return
	}
	r.of[ref] = r.order.PushBack(&recentItem{ref, u, size})
	for r.size += size; r.size > r.limit; {
		r.forget(valueOf(r.order.Front()).ref)
	}
}

// remove forgets an object.
func (r *recent) remove(ref cluster.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(ref)
}

func (r *recent) forget(ref cluster.Ref) {
	at := r.of[ref]
	if at == nil {
		return
	}
	r.order.Remove(at)
	r.size -= valueOf(at).size
	delete(r.of, ref)
}

func valueOf(at *list.Element) *recentItem {
	v, _ := at.Value.(*recentItem)
	return v
}
