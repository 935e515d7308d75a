package history

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// maxRequestKinds is how many pairs of verb and resource are counted in a reconcile; the rest counts as Other.
const maxRequestKinds = 32

// Other is the verb and resource of what is counted together.
const Other = "other"

// A Run is a reconcile that runs. A nil one notes nothing.
type Run struct {
	of    *KindLog
	key   Key
	began time.Time

	mu       sync.Mutex
	requests map[request]int
}

type request struct{ verb, resource string }

type runKey struct{}

// CountRequest counts a request to the API server in the reconcile of a context, if it has one.
func CountRequest(ctx context.Context, verb, resource string) {
	run, ok := ctx.Value(runKey{}).(*Run)
	if !ok {
		return
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	one := request{verb, short(resource)}
	if _, known := run.requests[one]; !known && len(run.requests) >= maxRequestKinds {
		one = request{Other, Other}
	}
	if run.requests == nil {
		run.requests = map[request]int{}
	}
	run.requests[one]++
}

// counted returns the requests so far, in order.
func (r *Run) counted() []Requests {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Requests, 0, len(r.requests))
	for one, n := range r.requests {
		out = append(out, Requests{one.verb, one.resource, n})
	}
	slices.SortFunc(out, func(a, b Requests) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}
