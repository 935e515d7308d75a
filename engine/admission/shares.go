package admission

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/utils/lru"
)

// shares decides whose request is processed next. A few are processed at once. Of the waiting ones, the next is from
// the tenant with the fewest in progress, and then from the tenant whose last turn is longest ago, so that no tenant
// has to wait for all requests of another.
type shares struct {
	// slots is how many requests are worked on at once.
	slots int

	mu      sync.Mutex
	busy    int
	running map[string]int
	// bytes has the size of the requests of each tenant that wait or are worked on.
	bytes   map[string]int64
	waiting []*turn
	// turns says when each tenant had the last turn.
	turns *lru.Cache
	turn  uint64
}

// A turn is that of one request.
type turn struct {
	tenant string
	size   int64
	// ready is closed when it has come.
	ready chan struct{}
}

const (
	// maxPending is how many requests wait or are worked on, and maxTenantPending how many of one tenant.
	maxPending       = 256
	maxTenantPending = 32
	// maxTenantBytes is how many bytes the requests of one tenant have, if it has several.
	maxTenantBytes = maxReviewBytes / 4
	// maxTenants is how many tenants are remembered.
	maxTenants = 10_000
)

// errTooMany is the error of a request while too many others wait.
var errTooMany = errors.New("too many requests are being reviewed")

func newShares(slots int) *shares {
	return &shares{slots: max(1, slots), running: map[string]int{}, bytes: map[string]int64{}, turns: lru.New(maxTenants)}
}

// take waits for the turn of a request with the given size in bytes, and returns a function that ends the turn. It
// errors with errTooMany, or with the error of the context.
func (s *shares) take(ctx context.Context, tenant string, size int64) (end func(), err error) {
	own, err := s.takeTurn(ctx, tenant, size)
	if err != nil {
		return nil, err
	}
	return func() { s.leave(own) }, nil
}

// takeTurn returns what take does, as a turn that may be passed on, and that leave ends.
func (s *shares) takeTurn(ctx context.Context, tenant string, size int64) (*turn, error) {
	own := &turn{tenant: tenant, size: size, ready: make(chan struct{})}
	if !s.enter(own) {
		return nil, errTooMany
	}
	select {
	case <-own.ready:
		return own, nil
	case <-ctx.Done():
		s.leave(own)
		return nil, ctx.Err()
	}
}

// pass lets those who wait have the slot of a turn, and waits for the next one. The request stays admitted meanwhile:
// it is never refused for being one too many. It errors with the error of the context; leave ends the turn then, too.
func (s *shares) pass(ctx context.Context, own *turn) error {
	select {
	case <-s.requeue(own):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// requeue lets a turn wait again, and returns what is closed when it has come.
func (s *shares) requeue(own *turn) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return own.ready
	}
	s.release(own)
	own.ready = make(chan struct{})
	s.waiting = append(s.waiting, own)
	s.assign()
	return own.ready
}

// enter lets a request wait, and reports whether it may.
func (s *shares) enter(own *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.running[own.tenant]
	for _, w := range s.waiting {
		if w.tenant == own.tenant {
			pending++
		}
	}
	if pending >= maxTenantPending || len(s.waiting)+s.busy >= maxPending {
		return false
	}
	if has := s.bytes[own.tenant]; has > 0 && has+own.size > maxTenantBytes {
		return false
	}
	s.bytes[own.tenant] += own.size
	s.waiting = append(s.waiting, own)
	s.assign()
	return true
}

// leave ends a request, whether it waits or is worked on.
func (s *shares) leave(own *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes[own.tenant] -= own.size; s.bytes[own.tenant] == 0 {
		delete(s.bytes, own.tenant)
	}
	if at := slices.Index(s.waiting, own); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		return
	}
	s.release(own)
	s.assign()
}

// release frees the slot of a turn.
func (s *shares) release(own *turn) {
	s.busy--
	if s.running[own.tenant]--; s.running[own.tenant] == 0 {
		delete(s.running, own.tenant)
	}
}

// assign gives the free slots to those who wait.
func (s *shares) assign() {
	for s.busy < s.slots && len(s.waiting) > 0 {
		next := 0
		for i := range s.waiting {
			if s.before(s.waiting[i].tenant, s.waiting[next].tenant) {
				next = i
			}
		}
		own := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.busy++
		s.running[own.tenant]++
		s.turn++
		s.turns.Add(own.tenant, s.turn)
		close(own.ready)
	}
}

// before reports whether a tenant has a turn before another one.
func (s *shares) before(a, b string) bool {
	if s.running[a] != s.running[b] {
		return s.running[a] < s.running[b]
	}
	return s.last(a) < s.last(b)
}

// last returns when a tenant had the last turn, or 0.
func (s *shares) last(tenant string) uint64 {
	at, _ := s.turns.Get(tenant)
	n, _ := at.(uint64)
	return n
}
