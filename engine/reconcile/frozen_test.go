package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestB1ReadsOfAFrozenCacheDoNoHarm is B1: the cache stands still for 1, 3 or 10
// steps, from each step of a workload on, and each object is created and deleted as
// often as without that.
func TestB1ReadsOfAFrozenCacheDoNoHarm(t *testing.T) {
	t.Parallel()
	scene{program: loadShop(t)}.sweepFrozen(t, workloads)
}

// TestB1ReadsOfAFrozenCacheRunNoHookTwice is B1 for hooks, where once too often is a
// migration that is run again.
func TestB1ReadsOfAFrozenCacheRunNoHookTwice(t *testing.T) {
	t.Parallel()
	scene{program: evaluator(t, hooked)}.sweepFrozen(t, hookedWorkloads)
}

// sweepFrozen lives through workloads with the cache frozen at each of their first
// steps.
func (s scene) sweepFrozen(t *testing.T, all map[string]workload) {
	t.Helper()
	for name, w := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, _ := s.liveThrough(t, w, fault{})
			for _, steps := range []int{1, 3, 10} {
				for from := 0; from < 6; from += stride {
					t.Run(fmt.Sprintf("frozen for %d steps from step %d", steps, from), func(t *testing.T) {
						if diff := cmp.Diff(want, s.liveFrozen(t, w, from, steps)); diff != "" {
							t.Errorf("(-fresh +frozen):\n%s", diff)
						}
					})
				}
			}
		})
	}
}

// liveFrozen lives through a workload with the cache frozen for some steps of each
// part of it.
func (s scene) liveFrozen(t *testing.T, w workload, from, steps int) outcome {
	t.Helper()
	c := s.open(t, fault{})
	process := s.start(c)
	for _, spec := range w {
		act(t, c.Cluster, spec)
		for i := range 40 {
			if i == from {
				c.seen.FreezeCache()
			}
			if i == from+steps {
				c.seen.ThawCache()
			}
			before := len(c.Changes())
			err := process.step(t)
			s.control(t, c.Cluster)
			if err == nil && len(c.Changes()) == before && i > from+steps {
				break
			}
		}
	}
	return observe(t, c.Cluster)
}
