package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// concurrently calls do for each number below n, so many at the same time, and returns the first error.
func concurrently(workers, n int, do func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// median returns the middle of some values.
func median(values []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return quantile(sorted, 0.5)
}
