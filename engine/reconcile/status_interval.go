package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// StepUnpaced is Step for a dry run, where progress need not be held back: it lets the time
// pass that it is held back for, and takes the step again.
func (l *Reconciler) StepUnpaced(ctx context.Context, key types.NamespacedName, p Package, pass func(time.Duration)) (time.Duration, error) {
	wait, err := l.Step(ctx, key, p)
	if err != nil || wait <= 0 || wait > progressEvery {
		return wait, err
	}
	pass(wait)
	return l.Step(ctx, key, p)
}

// statusInterval remembers when each resource's status was last written; its zero value is
// ready for use.
type statusInterval struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait returns how long progress has to be held back, or 0.
func (p *statusInterval) wait(key types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	if !ok {
		return 0
	}
	return max(0, progressEvery-now.Sub(last))
}

func (p *statusInterval) wrote(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]time.Time{}
	}
	p.last[key] = now
}

func (p *statusInterval) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
