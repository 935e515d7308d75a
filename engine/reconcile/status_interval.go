package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// StepUnpaced is Step for a dry run, where progress need not be held back: it lets the time
// pass for which Step holds progress back, and takes the step again.
func (l *Reconciler) StepUnpaced(ctx context.Context, key types.NamespacedName, p Package, pass func(time.Duration)) (time.Duration, error) {
	wait, err := l.Step(ctx, key, p)
	if err != nil || wait <= 0 || wait > progressEvery {
		return wait, err
	}
	pass(wait)
	return l.Step(ctx, key, p)
}

// statusInterval remembers when the status of a resource was last written.
type statusInterval struct {
	mu   sync.Mutex
	last time.Time
}

// wait returns how long progress has to be held back, or 0.
func (i *statusInterval) wait(now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(0, progressEvery-now.Sub(i.last))
}

func (i *statusInterval) wrote(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = now
}
