package eval

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
)

// What a comparison comes across, besides the disturbances.
const (
	anEdit        = "an edit of a specification"
	aPrune        = "a prune"
	aStop         = "a fault that stops a rollout"
	aServerChange = "a dry run on a server that changes something"
	aServerCut    = "a dry run on a server that is compared in part"
)

// A coverage counts what the comparisons of all packages come across: one that has nothing to compare any more finds
// no difference. Its counters are for tests that run at the same time.
type coverage map[string]*atomic.Int64

func newCoverage() coverage {
	c := coverage{}
	for _, what := range []string{anEdit, aPrune, aStop, aServerChange, aServerCut} {
		c[what] = &atomic.Int64{}
	}
	for _, d := range slices.Concat(disturbances, configurations) {
		c[d.name] = &atomic.Int64{}
	}
	return c
}

// expectAll fails a test at its end if something was never come across in all of its packages, of which each begins.
func (c coverage) expectAll(t *testing.T, packages int) (begin func()) {
	t.Helper()
	var begun atomic.Int64
	t.Cleanup(func() {
		for _, what := range slices.Sorted(maps.Keys(c)) {
			t.Logf("%6d × %s", c[what].Load(), what)
		}
		if int(begun.Load()) < packages {
			return // -run has selected some
		}
		for _, what := range c.never() {
			t.Errorf("no package has come across this, so nothing is compared there: %s", what)
		}
	})
	return func() { begun.Add(1) }
}

// met counts something that was come across.
func (c coverage) met(what string) { c[what].Add(1) }

// never returns what was not come across, and should be. Few packages have objects with finalizers or name a UID, so
// nothing needs to be compared in part.
func (c coverage) never() []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		if what != aServerCut && c[what].Load() == 0 {
			out = append(out, what)
		}
	}
	return out
}

func TestWhatWasNeverComeAcrossIsSaid(t *testing.T) {
	t.Parallel()
	c := newCoverage()
	for what := range c {
		if what != aPrune && what != aServerCut {
			c.met(what)
		}
	}
	if never := c.never(); !slices.Equal(never, []string{aPrune}) {
		t.Errorf("never: %q", never)
	}
}

func TestMergedWritesAreSharedAsAWhole(t *testing.T) {
	t.Parallel()
	object := func(name, uid, note string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"note": note}}}
		u.SetName(name)
		u.SetUID(types.UID(uid))
		return u
	}
	change := func(op cluster.Operation, u *unstructured.Unstructured) cluster.ObjectChange {
		return cluster.ObjectChange{Change: cluster.Change{Operation: op, Ref: cluster.RefOf(u)}, Before: object(u.GetName(), "", ""), Object: u}
	}
	deleting := object("b", "of-b", "")
	deleting.SetDeletionTimestamp(new(metav1.Now()))
	first := change(cluster.Created, object("a", "of-a", ""))
	for name, row := range map[string]struct {
		reason  string
		changes []cluster.ObjectChange
		want    int
	}{
		"nothing":          {"there is nothing to leave out", nil, 0},
		"no UID":           {"both do the same", []cluster.ObjectChange{first, change(cluster.Updated, object("b", "of-b", "x"))}, 2},
		"a UID":            {"an object that is created has another UID", []cluster.ObjectChange{first, change(cluster.Updated, object("b", "of-b", "of-a"))}, 1},
		"a UID at the end": {"the two writes of b are one for the dry run", []cluster.ObjectChange{first, change(cluster.Updated, object("b", "of-b", "x")), change(cluster.Updated, object("b", "of-b", "of-a"))}, 1},
		"a deletion":       {"nothing waits for its finalizers there", []cluster.ObjectChange{change(cluster.Updated, deleting), first}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := sharedChanges(row.changes); n != row.want {
				t.Errorf("%s: %d of %d changes, not %d", row.reason, n, len(row.changes), row.want)
			}
		})
	}
}
