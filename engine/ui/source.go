package ui

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
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
	// kept are the last results, by what was read.
	kept *lru.Cache
}

// A result is what was read, and when.
type result struct {
	all []explain.Resource
	err error
	at  time.Time
}

func newReader(source Source, now func() time.Time) *reader {
	return &reader{source: source, now: now, slots: semaphore.NewWeighted(maxReads), kept: lru.New(maxKept)}
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
	// Kinds of two groups may have one name, which is all that a Ref says of them to people.
	done := r.flights.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		if err := r.slots.Acquire(ctx, 1); err != nil {
			return result{err: fmt.Errorf("the cluster answers too slowly: %w", err)}, nil
		}
		defer r.slots.Release(1)
		all, err := from(ctx)
		out := result{all, err, r.now()}
		r.kept.Add(key, out)
		return out, nil
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
	last, _ := r.kept.Get(key)
	kept, is := last.(result)
	return kept, is && r.now().Sub(kept.at) < keptFor
}
