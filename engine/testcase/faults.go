package testcase

import (
	"context"
	"fmt"

	"operetta.dev/engine/cluster/faulty"
	"operetta.dev/engine/dryrun"
)

// InjectedFaults are what fails while the operator acts in a step.
type InjectedFaults struct {
	// CrashAfter are writes after which the operator dies, each counted from its start. It is started anew.
	CrashAfter []int `json:"crashAfter"`
	// LoseAt is a write that is carried out, and whose response is lost.
	LoseAt int `json:"loseAt"`
	// RefuseAt is a write that the API server answers with an error.
	RefuseAt int `json:"refuseAt"`
	// FrozenCache says that the operator's cache shows the state before the step, for at most frozenReconciles.
	FrozenCache bool `json:"frozenCache"`
}

// frozenReconciles is after how many reconciles a frozen cache catches up, in a step that runs to rest: with a cache that
// never shows what it has written, the operator would write it again without end. It is the most that schedules try.
const frozenReconciles = 3

// Begin comes before what the step changes: a frozen cache does not show that.
func (f InjectedFaults) Begin(w *dryrun.World) {
	if f.FrozenCache {
		w.Seen().FreezeCache()
	}
}

// While lets the operator act, and fail. It returns which faults have not happened, or "", and the error of act. None is
// left afterwards.
func (f InjectedFaults) While(w *dryrun.World, act func() error) (missed string, err error) {
	w.Seen().InjectFaults(faulty.Plan{CrashAfter: f.CrashAfter, LoseAt: f.LoseAt, RefuseAt: f.RefuseAt})
	defer func() {
		w.Seen().InjectFaults(faulty.Plan{})
		w.Seen().ThawCache()
	}()
	err = act()
	if pending := w.Seen().Pending().String(); pending != "" {
		missed = fmt.Sprintf("%s: that has not happened, the step has %d writes", pending, w.Seen().Writes())
	}
	return missed, err
}

// Rest lets the operator act until nothing changes any more, and shows each step in which something did. It is for While:
// a frozen cache catches up on the way. It errors if the context ends, or if it does not come to rest.
func (f InjectedFaults) Rest(ctx context.Context, w *dryrun.World, show func(dryrun.Step)) error {
	frozen := 0
	if f.FrozenCache {
		frozen = frozenReconciles
	}
	if err := catchUp(ctx, w, frozen, show); err != nil {
		return err
	}
	return w.Run(ctx, show)
}

// catchUp lets the operator reconcile so many times with a cache that may be frozen, and then ends that. It errors if the
// context ends.
func catchUp(ctx context.Context, w *dryrun.World, reconciles int, show func(dryrun.Step)) error {
	for range reconciles {
		if err := w.Round(ctx, show); err != nil {
			return err
		}
	}
	w.Seen().ThawCache()
	return nil
}
