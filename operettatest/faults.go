package operettatest

import (
	"testing"

	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/testcase"
)

// Faults are what fails while the operator acts, in the words of the tests in CUE. Its writes are counted from 1, with
// those of the status and of finalizers.
type Faults struct {
	// CrashAfter are writes after which the operator dies, each counted from its start. It is started anew, and goes on.
	CrashAfter []int
	// LoseAt is a write that is carried out, and whose response is lost; 0 is none.
	LoseAt int
	// RefuseAt is a write that the API server answers with an error; 0 is none.
	RefuseAt int
	// FrozenCache is true if the operator's cache shows the state of now. In a Run it catches up after three reconciles,
	// and then the operator goes on until it rests; a RunOnce is over before that.
	FrozenCache bool
}

// Disturb says what fails in the next Run or RunOnce, which ends it. What is put or deleted between the two, a frozen
// cache does not show.
func (c *Cluster) Disturb(f Faults) {
	c.faults = testcase.InjectedFaults(f)
	c.faults.Begin(c.session.World())
}

// Run lets the operator and the simulated controllers of Kubernetes act until nothing changes any more. It fails the
// test if that does not happen, or if a fault of Disturb does not.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	faults := c.faults
	c.act(t, func(w *dryrun.World) error { return faults.Rest(t.Context(), w, func(dryrun.Step) {}) })
}

// RunOnce is Run for one reconcile.
func (c *Cluster) RunOnce(t testing.TB) {
	t.Helper()
	c.act(t, func(w *dryrun.World) error { return w.Round(t.Context(), func(dryrun.Step) {}) })
}

func (c *Cluster) act(t testing.TB, do func(*dryrun.World) error) {
	t.Helper()
	world, faults := c.session.World(), c.faults
	c.faults = testcase.InjectedFaults{}
	missed, err := faults.While(world, func() error { return do(world) })
	if err != nil {
		t.Fatal(err)
	}
	if missed != "" {
		t.Errorf("faults: %s", missed)
	}
}
