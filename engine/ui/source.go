package ui

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
)

// A Source reads resources.
type Source interface {
	// List returns all resources, by their status alone. It errors if they cannot be read.
	List(ctx context.Context) ([]explain.Resource, error)
	// Explain returns one resource with its objects. It errors if it does not exist or cannot be read.
	Explain(ctx context.Context, ref object.Ref) (explain.Resource, error)
}

// listKey is the key of the list among those of resources.
var listKey = object.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "List"}}

const (
	// maxReads is how many things are read at the same time.
	maxReads = 4
	// maxKept is how many results are kept.
	maxKept = 1000
)

// A reader reads from a Source what it has not read a moment ago, each thing once at a time.
type reader struct {
	source Source
	now    func() time.Time
	// flights has what is being read, and slots bounds how much is.
	flights singleflight.Group
	slots   *semaphore.Weighted

	mu   sync.Mutex
	kept map[object.Ref]result
}

// A result is what was read, and when.
type result struct {
	all []explain.Resource
	err error
	at  time.Time
}

func newReader(source Source, now func() time.Time) *reader {
	return &reader{source: source, now: now, slots: semaphore.NewWeighted(maxReads), kept: map[object.Ref]result{}}
}

// list returns all resources.
func (r *reader) list(ctx context.Context) ([]explain.Resource, error) {
	found := r.read(ctx, listKey, r.source.List)
	return found.all, found.err
}

// explain returns one resource.
func (r *reader) explain(ctx context.Context, ref object.Ref) (explain.Resource, error) {
	found := r.read(ctx, ref, func(ctx context.Context) ([]explain.Resource, error) {
		one, err := r.source.Explain(ctx, ref)
		return []explain.Resource{one}, err
	})
	if found.err != nil {
		return explain.Resource{}, found.err
	}
	return found.all[0], nil
}

// read returns what was read a moment ago, or reads it. The read goes on for the others if the first one who has asked
// goes away, but no longer than readTimeout.
func (r *reader) read(ctx context.Context, key object.Ref, from func(context.Context) ([]explain.Resource, error)) result {
	if kept, fresh := r.fresh(key); fresh {
		return kept
	}
	// The text of a key has no group, and two groups may have kinds of one name.
	done := r.flights.DoChan(key.GroupVersion().String()+" "+key.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		if err := r.slots.Acquire(ctx, 1); err != nil {
			return result{err: fmt.Errorf("the cluster answers too slowly: %w", err)}, nil
		}
		defer r.slots.Release(1)
		all, err := from(ctx)
		return r.keep(key, result{all, err, r.now()}), nil
	})
	select {
	case <-ctx.Done():
		return result{err: ctx.Err()}
	case found := <-done:
		out, _ := found.Val.(result)
		return out
	}
}

// fresh returns a result that is not old yet.
func (r *reader) fresh(key object.Ref) (result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, is := r.kept[key]
	return kept, is && r.now().Sub(kept.at) < keptFor
}

// keep keeps a result, and forgets old ones when there are many.
func (r *reader) keep(key object.Ref, found result) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxKept {
		clear(r.kept)
	}
	r.kept[key] = found
	return found
}
