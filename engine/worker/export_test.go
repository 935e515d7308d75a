package worker

import (
	"context"
	"io"
	"time"
)

// ServeUntil is Serve for a worker that is replaced after so many evaluations, or when a garbage collection leaves so many bytes.
func ServeUntil(in io.Reader, out io.Writer, l Limits, evaluations int, live uint64) error {
	return serve(in, out, l, lifetime{evaluations, live})
}

// Processes returns how many workers there are, those that are being started included.
func (p *Pool) Processes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allBusy() + len(p.idle)
}

// Busy returns how many workers a namespace has.
func (p *Pool) Busy(namespace string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[namespace]
}

// Waiting returns how many wait for a worker.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// Idle returns the numbers of the processes of the workers that do nothing.
func (p *Pool) Idle() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for _, w := range p.idle {
		out = append(out, w.cmd.Process.Pid)
	}
	return out
}

// A Waiter is one that waits for a worker.
type Waiter struct {
	Tenant string
	// Since is how long it has waited.
	Since time.Duration
}

// Suspect notes that a resource of a namespace has cost a worker.
func (p *Pool) Suspect(namespace string) { p.suspect(namespace) }

// Slow notes that an evaluation of a namespace has taken long.
func (p *Pool) Slow(namespace string) { p.noteUsed(namespace, p.options.Limits.Time) }

// Acquire waits for a worker for a namespace. It errors if none could be started.
func (p *Pool) Acquire(ctx context.Context, namespace string) error {
	_, err := p.acquire(ctx, namespace, 1)
	return err
}

// Hold has a worker for a namespace until release is called, without a process.
func (p *Pool) Hold(namespace string) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[namespace]++
	return func() { p.release(namespace, nil) }
}

// Next returns which tenant gets a worker next, or "", if some have workers, some wait, and evaluations of some took long.
func (p *Pool) Next(busy map[string]int, slow, suspects []string, waiting ...Waiter) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = busy
	for _, tenant := range slow {
		p.slow.Add(tenant, time.Now())
	}
	for _, tenant := range suspects {
		p.suspects.Add(tenant, time.Now())
	}
	for _, w := range waiting {
		p.waiting = append(p.waiting, &waiter{tenant: w.Tenant, since: time.Now().Add(-w.Since)})
	}
	if at := p.next(); at >= 0 {
		return p.waiting[at].tenant
	}
	return ""
}

// IsSlow reports whether an evaluation of a namespace has taken long lately.
func (p *Pool) IsSlow(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isExpensive(namespace) && !p.isSuspect(namespace)
}
