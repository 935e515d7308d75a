package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// Options are the settings of a Pool.
type Options struct {
	// Command is the program that is run as a worker, with its first arguments: it calls Serve with the
	// limits that the other arguments say.
	Command []string
	// Size is how many workers there are at most.
	Size int
	// Limits are those of each worker.
	Limits Limits
	// Patience is how many times its limit of processor time an evaluation may take by the clock; 0 is a default.
	Patience int
	// IdleTime is how long a worker stays that nobody needs; 0 is a default.
	IdleTime time.Duration
	// Metrics count; nil counts nothing.
	Metrics *Metrics
}

// A Pool has the worker processes of this process. It is safe for concurrent use.
type Pool struct {
	options Options

	mu sync.Mutex
	// packages counts the packages that were added.
	packages uint64
	// idle are the workers that do nothing, the last used one last.
	idle []*process
	// busy is how many workers each tenant has.
	busy map[string]int
	// waiting are those who wait for a worker, in the order in which they came.
	waiting []*waiter
	// turns says when each tenant had the last turn, suspects when each has cost a worker, and slow when each had an evaluation that
	// took long.
	turns, suspects, slow *lru.Cache
	turn                  uint64
	// borrowers is how many have the room of a worker, and asking tells those who wait for it.
	borrowers int
	asking    []chan struct{}
	closed    bool
}

// A waiter waits for a worker.
type waiter struct {
	tenant string
	pkg    uint64
	since  time.Time
	// take returns what it gets; fresh is true if that is nil, for a new worker, whatever there is.
	take  func(*waiter) *process
	fresh bool
	// ready gets a worker, or nil if a new one may be started.
	ready chan *process
}

// maxTenants is how many tenants a pool remembers.
const maxTenants = 10_000

// NewPool returns a pool, which has no worker yet.
func NewPool(o Options) *Pool {
	o.Size, o.IdleTime = max(1, o.Size), cmp.Or(o.IdleTime, idleTime)
	if o.Metrics == nil {
		o.Metrics = NewMetrics() // nobody collects them
	}
	return &Pool{options: o, busy: map[string]int{}, turns: lru.New(maxTenants), suspects: lru.New(maxTenants), slow: lru.New(maxTenants)}
}

// Size returns how many workers there are at most.
func (p *Pool) Size() int { return p.options.Size }

// errClosed is the error of a pool that was closed.
var errClosed = errors.New("the workers have ended")

// Close ends the idle workers at once, and each busy one when it becomes idle. After that, no caller gets a worker.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.idle {
		w.close()
	}
	p.idle = nil
	for _, w := range p.waiting {
		close(w.ready)
	}
	p.waiting = nil
	p.lendRoom()
}

// acquire returns a worker, which has loaded the package if one has. It errors if the context ends before
// there is one, or if none can be started.
func (p *Pool) acquire(ctx context.Context, tenant string, pkg uint64) (*process, error) {
	return p.wait(ctx, &waiter{tenant: tenant, pkg: pkg, take: p.take})
}

// acquireNew returns a worker that has done nothing. It errors as acquire does.
func (p *Pool) acquireNew(ctx context.Context, tenant string, pkg uint64) (*process, error) {
	return p.wait(ctx, &waiter{tenant: tenant, pkg: pkg, take: p.makeRoom, fresh: true})
}

// wait returns the worker of a waiter when it has one.
func (p *Pool) wait(ctx context.Context, own *waiter) (*process, error) {
	own.ready, own.since = make(chan *process, 1), time.Now()
	defer func() { p.options.Metrics.wait.Observe(time.Since(own.since).Seconds()) }()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.waiting = append(p.waiting, own)
	p.assign()
	p.mu.Unlock()
	defer time.AfterFunc(startAfter, p.reassign).Stop()
	defer time.AfterFunc(slowLentTime, p.reassign).Stop()
	defer time.AfterFunc(suspectLentTime, p.reassign).Stop()
	select {
	case w, ok := <-own.ready:
		if !ok {
			return nil, errClosed
		}
		return p.started(ctx, own.tenant, w)
	case <-ctx.Done():
		p.leave(own)
		return nil, ctx.Err()
	}
}

// started returns a worker, or a new one for nil.
func (p *Pool) started(ctx context.Context, tenant string, w *process) (*process, error) {
	if w != nil {
		return w, nil
	}
	w, err := start(ctx, p.options)
	if err != nil {
		p.release(tenant, nil)
		return nil, err
	}
	w.suspect = p.Suspects(tenant)
	return w, nil
}

// leave takes back what a waiter has got that does not wait any more.
func (p *Pool) leave(own *waiter) {
	p.mu.Lock()
	at := slices.Index(p.waiting, own)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		return
	}
	if w, ok := <-own.ready; ok {
		p.release(own.tenant, w)
	}
}

// release takes a worker back from a tenant, or notes that it is gone if it has ended or is nil. One that
// should be replaced ends.
func (p *Pool) release(tenant string, w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[tenant]--; p.busy[tenant] == 0 {
		delete(p.busy, tenant)
	}
	switch {
	case w == nil || w.hasEnded():
	case p.closed || w.retire:
		w.close()
	default:
		p.idle = append(p.idle, w)
		w.idle = time.AfterFunc(p.options.IdleTime, func() { p.retire(w) })
		p.endIdle()
	}
	p.lendRoom()
	p.assign()
}

// retire ends a worker that is idle.
func (p *Pool) retire(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.idle, w); at >= 0 {
		p.idle = slices.Delete(p.idle, at, at+1)
		w.close()
	}
}

// suspect notes that a resource of a tenant has cost a worker.
func (p *Pool) suspect(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspects.Add(tenant, time.Now())
}

// Suspects reports whether a resource of a namespace has cost a worker lately.
func (p *Pool) Suspects(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isSuspect(namespace)
}

// isSuspect reports whether a resource of a tenant has cost a worker lately.
func (p *Pool) isSuspect(tenant string) bool { return noted(p.suspects, tenant, suspectTime) }

// isExpensive reports whether an evaluation of a tenant has cost a worker, or has taken long, lately.
func (p *Pool) isExpensive(tenant string) bool {
	return p.isSuspect(tenant) || noted(p.slow, tenant, slowTime)
}

// noted reports whether a tenant has been noted within some time.
func noted(tenants *lru.Cache, tenant string, within time.Duration) bool {
	v, _ := tenants.Get(tenant)
	at, ok := v.(time.Time)
	return ok && time.Since(at) < within
}

// noteSlow notes that an evaluation of a tenant has taken long.
func (p *Pool) noteSlow(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow.Add(tenant, time.Now())
}

// noteUsed notes how much processor time an evaluation of a tenant has taken.
func (p *Pool) noteUsed(tenant string, used time.Duration) {
	if used < p.options.Limits.Time/slowShare {
		return
	}
	p.noteSlow(tenant)
}

// reassign is assign for those who have waited for some time.
func (p *Pool) reassign() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assign()
}

// assign gives workers to those who wait.
func (p *Pool) assign() {
	for {
		p.idle = slices.DeleteFunc(p.idle, (*process).hasEnded)
		at := p.next()
		if at < 0 {
			return
		}
		own := p.waiting[at]
		p.waiting = slices.Delete(p.waiting, at, at+1)
		p.turn++
		p.turns.Add(own.tenant, p.turn)
		p.busy[own.tenant]++
		own.ready <- own.take(own)
	}
}

// next returns who gets a worker next, or -1.
func (p *Pool) next() int {
	size := p.size()
	busy := p.allBusy()
	if busy >= size {
		return -1
	}
	u := p.use(size)
	// One that is busy may be free before another has started, and takes less memory than two.
	patient := busy > 0 && len(p.idle) == 0 && len(p.waiting) > 0 && time.Since(p.waiting[0].since) < startAfter
	out := -1
	for i, w := range p.waiting {
		if patient && !w.fresh || !p.mayHave(w, u) {
			continue
		}
		if out < 0 || p.before(w, p.waiting[out]) {
			out = i
		}
	}
	return out
}

// A use says who has the workers.
type use struct {
	// suspects and expensive are how many workers those have that are suspect, or expensive; most is how many one tenant may have.
	suspects, expensive, most int
	// lent is true if only one worker is left while a package is examined, and othersFirst if somebody waits for it who is no suspect.
	lent, othersFirst bool
}

// use returns who has the workers, of which there may be so many.
func (p *Pool) use(size int) use {
	u := use{most: max(1, size-1), lent: size == 1 && p.options.Size > 1}
	for tenant, n := range p.busy {
		if p.isSuspect(tenant) {
			u.suspects += n
		}
		if p.isExpensive(tenant) {
			u.expensive += n
		}
	}
	u.othersFirst = u.lent && slices.ContainsFunc(p.waiting, func(w *waiter) bool { return !p.isSuspect(w.tenant) })
	return u
}

// mayHave reports whether a waiter may have one more worker. Tenants take turns, and none has all workers, if there are several:
// all of its evaluations may hang. Those that are suspect have one worker together. Those that are expensive leave one together to the others, if there are several. If
// only one is left while a package is examined, they have it when they have waited for long, and suspects if nobody else waits then.
func (p *Pool) mayHave(w *waiter, u use) bool {
	switch {
	case p.busy[w.tenant] >= u.most:
		return false
	case p.isSuspect(w.tenant):
		return u.suspects == 0 && !u.othersFirst && u.expensive < u.most && (!u.lent || time.Since(w.since) >= suspectLentTime)
	case p.isExpensive(w.tenant):
		return u.expensive < u.most && (!u.lent || time.Since(w.since) >= slowLentTime)
	}
	return true
}

// before reports whether the turn of a waiter comes before that of another. An expensive tenant lets others pass for some time:
// they would wait longer for its evaluation than it waits for theirs.
func (p *Pool) before(a, b *waiter) bool {
	last := func(tenant string) uint64 {
		v, _ := p.turns.Get(tenant)
		turn, _ := v.(uint64)
		return turn
	}
	yields := func(w *waiter) int {
		if p.isExpensive(w.tenant) && time.Since(w.since) < yieldTime {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(p.busy[a.tenant], p.busy[b.tenant]), cmp.Compare(yields(a), yields(b)), cmp.Compare(last(a.tenant), last(b.tenant))) < 0
}

// take returns an idle worker, if possible one that has loaded the package, or nil for a new one. A suspect leaves the worker
// that others have used, if there may be another one: it may cost it, and the next edit would wait until a new one has
// loaded the package.
func (p *Pool) take(own *waiter) *process {
	suspect := p.isSuspect(own.tenant)
	at, best := -1, -1
	for i, w := range p.idle {
		fits := 0
		if w.suspect == suspect {
			fits += 2
		}
		if w.loaded[own.pkg] {
			fits++
		}
		if fits >= best {
			at, best = i, fits
		}
	}
	room := p.allBusy()+len(p.idle) <= p.size()
	if at < 0 || suspect && room && !p.idle[at].suspect {
		return nil
	}
	w := p.idle[at]
	w.suspect = suspect
	w.idle.Stop()
	p.idle = slices.Delete(p.idle, at, at+1)
	return w
}

// makeRoom returns no worker, so that a new one is started. If there are too many then, it ends the one that
// was not used for longest.
func (p *Pool) makeRoom(*waiter) *process {
	p.endIdle()
	return nil
}
