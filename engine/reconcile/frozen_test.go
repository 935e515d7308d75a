package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// frozen is a cluster and store whose cache stands still for some steps: Get
// answers what was there when the freeze began, Read and writes are live.
type frozen struct {
	*faulty
	view map[cluster.Ref]*unstructured.Unstructured
}

// freeze makes the cache stand still.
func (f *frozen) freeze(t *testing.T) {
	t.Helper()
	f.view = map[cluster.Ref]*unstructured.Unstructured{}
	for _, ref := range f.Refs() {
		f.view[ref.Identity()] = read(t, f.Cluster, ref)
	}
}

// thaw lets the cache catch up.
func (f *frozen) thaw() { f.view = nil }

func (f *frozen) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.view == nil {
		return f.faulty.GetCached(ctx, ref)
	}
	if u := f.view[ref.Identity()]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, nil
}

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
	f := &frozen{faulty: c}
	process := s.start(c)
	process.shops.Cluster, process.shops.Resources = f, f
	for _, spec := range w {
		act(t, c.Cluster, spec)
		for i := range 40 {
			if i == from {
				f.freeze(t)
			}
			if i == from+steps {
				f.thaw()
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
