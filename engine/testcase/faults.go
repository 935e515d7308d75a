package testcase

import (
	"fmt"

	"operetta.dev/engine/cluster/faulty"
	"operetta.dev/engine/dryrun"
)

// Faults are what fails while the operator acts in a step.
type Faults struct {
	// CrashAfter are writes after which the operator dies, each counted from its start. It is started anew.
	CrashAfter []int `json:"crashAfter"`
	// LoseAt is a write that is carried out, and whose response is lost.
	LoseAt int `json:"loseAt"`
	// RefuseAt is a write that the API server answers with an error.
	RefuseAt int `json:"refuseAt"`
	// FrozenCache says that the operator's cache shows the state before the step.
	FrozenCache bool `json:"frozenCache"`
}

// Begin comes before what the step changes: a frozen cache does not show that.
func (f Faults) Begin(w *dryrun.World) {
	if f.FrozenCache {
		w.FreezeCaches()
	}
}

// While lets the operator act, and fail. It returns which faults have not happened, or "", and the error of act. None is
// left afterwards.
func (f Faults) While(w *dryrun.World, act func() error) (missed string, err error) {
	w.Disturb(faulty.Plan{CrashAfter: f.CrashAfter, LoseAt: f.LoseAt, RefuseAt: f.RefuseAt})
	defer func() {
		w.Disturb(faulty.Plan{})
		w.ThawCaches()
	}()
	err = act()
	if pending := w.Pending(); pending != "" {
		missed = fmt.Sprintf("%s: that has not happened, the step has %d writes", pending, w.Writes())
	}
	return missed, err
}
