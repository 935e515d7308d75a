package reconcile_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster/faulty"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/rollout"
)

// A fault says what fails at which write.
type fault struct {
	faulty.Plan

	// away means that the process stays dead until the person has done the next thing.
	away bool
}

func crashAfter(writes ...int) fault { return fault{Plan: faulty.Plan{CrashAfter: writes}} }

func loseAt(write int) fault { return fault{Plan: faulty.Plan{LoseAt: write}} }

// String is the name of the plan, by which a test replays it.
func (f fault) String() string {
	if f.away {
		return fmt.Sprintf("%s and away for a while", f.Plan)
	}
	return f.Plan.String()
}

// disturbed is a cluster in memory, and how the operators see it: their writes can fail.
type disturbed struct {
	*memory.Cluster

	seen  *faulty.Cluster
	fault fault
}

// newDisturbed returns an empty cluster with a fault.
func newDisturbed(f fault) *disturbed {
	m := memory.New()
	d := &disturbed{m, faulty.New(m, m), f}
	d.seen.InjectFaults(f.Plan)
	return d
}

// quiet records nothing.
type quiet struct{}

func (quiet) Record(*unstructured.Unstructured, rollout.Event) {}
