package packages

import (
	"context"
	"sync"
	"time"
)

// background is work that runs beside the reconciles, because it may take long or hang: what is served goes on meanwhile,
// and so do the reconciles of other Packages.
type background struct {
	cancel context.CancelFunc
	// done is closed when the result is set.
	done chan struct{}
}

// newBackground returns work that begins, with a context that outlives the reconcile.
func newBackground(ctx context.Context) (context.Context, background) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return ctx, background{cancel, make(chan struct{})}
}

// ended reports whether the result is known.
func (b background) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// slots has a place for each thing that runs beside the reconciles.
type slots struct {
	once  sync.Once
	slots chan struct{}
}

// run waits for one of some places, and does something there, which has a limited time.
func (f *slots) run(ctx context.Context, most int, limit time.Duration, do func(context.Context) error) error {
	f.once.Do(func() { f.slots = make(chan struct{}, most) })
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// doubled returns a delay that doubles with each try, until it is the longest.
func doubled(delay, longest time.Duration, tries int) time.Duration {
	for range tries {
		delay = min(2*delay, longest)
	}
	return delay
}
