package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ReconcileWithoutStatusDelay is Reconcile for a dry run, where no progress is to be held back: if Reconcile returns
// that progress is held back in the status, it lets that time pass and reconciles again.
func (r *Reconciler) ReconcileWithoutStatusDelay(ctx context.Context, key types.NamespacedName, p Package, pass func(time.Duration)) (time.Duration, error) {
	wait, err := r.Reconcile(ctx, key, p)
	if err != nil || wait <= 0 || wait > progressEvery {
		return wait, err
	}
	pass(wait)
	return r.Reconcile(ctx, key, p)
}

// untilProgress returns how long progress has to be held back, or 0.
func (m *memory) untilProgress(now time.Time) time.Duration {
	return max(0, progressEvery-now.Sub(m.statusWritten))
}
