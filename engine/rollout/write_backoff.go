package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// A WriteBackoff delays the writes of an object of one resource that is written again and again:
// another client may undo each write, or the package may render something else each time. It is safe
// for concurrent use.
type WriteBackoff interface {
	// Delay returns the delay of an object, whose state is the need.
	Delay(component, object string, need Need) WriteDelay
	// Wrote notes that an object was written, and why.
	Wrote(component, object string, why WriteCause)
}

// A Need says whether an object needs a write now.
type Need string

// The needs.
const (
	Wanted Need = "Wanted"
	InSync Need = "InSync"
)

// A WriteDelay is the delay of an object that was written too often; its zero value is no delay.
type WriteDelay struct {
	// Times is how often the object was written in a row.
	Times int
	// Why is why it was written last.
	Why WriteCause
	// Wait is how long it must not be written. If it is in sync, the delay ends when it stays
	// so for that long.
	Wait time.Duration
	// Longest is the longest delay there is.
	Longest time.Duration
}

// A WriteCause says why an object was written.
type WriteCause struct {
	Decision ownership.Decision
	// Field is the field that differed, as far as it is known, and Manager the field manager
	// that had changed it.
	Field, Manager string
	// Grows says that a component had one new object after the other.
	Grows bool
}

// delayOf returns the delay of an object.
func (ap applier) delayOf(d ownership.Desired, need Need) WriteDelay {
	if ap.in.WriteBackoff == nil {
		return WriteDelay{}
	}
	return ap.in.WriteBackoff.Delay(d.Component, d.Object, need)
}

// performUnlessDelayed carries out one decision unless it is delayed.
func (ap applier) performUnlessDelayed(ctx context.Context, s decision, out *application) error {
	delay := ap.delayOf(s.want, needOf(s.action.Decision))
	if !s.delayed {
		written := len(out.writes) + len(out.recreated)
		if err := ap.perform(ctx, s, out); err != nil {
			return err
		}
		if len(out.writes)+len(out.recreated) > written {
			ap.noteWritten(s)
			delay = ap.delayOf(s.want, InSync)
		}
	}
	if delay.Times == 0 {
		return nil
	}
	if out.keepsChanging.Name == "" {
		out.keepsChanging = keepsChanging(s, delay)
	}
	out.requeueAfter = ShortestWait(out.requeueAfter, max(delay.Wait, time.Second))
	return nil
}

// delayTogether delays all updates of a component if one is delayed: all its objects are changed,
// or none.
func delayTogether(decisions []decision) {
	if !slices.ContainsFunc(decisions, func(s decision) bool { return s.delayed && s.action.Decision == ownership.Update }) {
		return
	}
	for i, s := range decisions {
		decisions[i].delayed = s.delayed || s.action.Decision == ownership.Update
	}
}

// needOf returns whether a decision writes.
func needOf(d ownership.Decision) Need {
	switch d {
	case ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
		return Wanted
	case ownership.Keep, ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
	}
	return InSync
}

// noteWritten notes that an object was written.
func (ap applier) noteWritten(s decision) {
	if ap.in.WriteBackoff == nil {
		return
	}
	why := WriteCause{Decision: s.action.Decision}
	switch {
	case s.action.Decision == ownership.Repair && s.live != nil:
		why.Field, why.Manager = ownership.LostField(s.want, s.live)
	case s.action.Decision == ownership.Update && s.live != nil:
		why.Field = ownership.DifferingField(s.want, s.live)
	}
	// The text is repeated by later rollouts, which may not know the Secret in it any more.
	why.Field = ap.in.Redactor.Text(why.Field)
	ap.in.WriteBackoff.Wrote(s.want.Component, s.want.Object, why)
}

// keepsChanging is the outcome of a component if an object was written too often.
func keepsChanging(s decision, d WriteDelay) status.Component {
	return status.Component{
		Name: s.want.Component, State: status.Retrying, Reason: status.ReasonKeepsChanging,
		Message: fmt.Sprintf("%s: %s (%s)", s.want.Ref(), d.text(), s.want.Position),
	}
}

// text says what happens to the object, and how often: by the order of magnitude, so that the
// message rarely changes.
func (d WriteDelay) text() string {
	field := d.Why.Field
	if field == "" {
		field = "it"
	}
	what := field + " is rendered differently each time, from something that keeps changing"
	switch {
	case d.Why.Grows:
		what = "its component has another new object each time, from something that keeps changing"
	case d.Why.Decision == ownership.Create:
		what = "it is deleted each time it was created"
	case d.Why.Decision == ownership.Repair:
		who := "somebody else"
		if d.Why.Manager != "" {
			who = "manager " + d.Why.Manager
		}
		what = field + " is changed by " + who + " each time it was corrected"
	case d.Why.Decision == ownership.Adopt:
		what = "it is taken by somebody else each time it was adopted"
	}
	return fmt.Sprintf("%s, at least %d times in a row; it is written with growing delays of up to %s", what, magnitude(d.Times),
		strings.TrimSuffix(d.Longest.String(), "0s"))
}

// magnitude returns the largest of 1, 2, 5, 10, 20, 50 and so on that a number reaches.
func magnitude(n int) int {
	out := 1
	for scale := 1; scale <= n; scale *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*scale <= n {
				out = m * scale
			}
		}
	}
	return out
}
