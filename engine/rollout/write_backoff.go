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

// A WriteBackoff keeps the objects of one resource from being written for ever: somebody may
// undo each write, or the package render something else after each. It is safe for
// concurrent use.
type WriteBackoff interface {
	// Delay returns what is known of the writes of an object that is to be written now,
	// or not.
	Delay(component, object string, need Need) WriteDelay
	// Wrote notes that an object was written, and why.
	Wrote(component, object string, why WriteCause)
}

// A Need says whether an object is to be written.
type Need string

// The needs.
const (
	Wanted Need = "Wanted"
	InSync Need = "InSync"
)

// A WriteDelay is what is known of an object that was written too often; its zero value is
// that of any other.
type WriteDelay struct {
	// Times is how often it was written in a row.
	Times int
	// Why is why it was written last.
	Why WriteCause
	// Wait is how long it must not be written, or, if it is in sync, has to stay so to
	// count as any other.
	Wait time.Duration
	// Longest is how long the longest pause is.
	Longest time.Duration
}

// A WriteCause says why an object was written.
type WriteCause struct {
	Verb ownership.Verb
	// Field is the one that was written, as far as it is known, and Manager who had
	// changed it.
	Field, Manager string
	// Grows says that it was not this object alone, but one new one after the other.
	Grows bool
}

// delayOf returns what is known of an object that was written too often.
func (ap applier) delayOf(component, object string, need Need) WriteDelay {
	if ap.in.WriteBackoff == nil {
		return WriteDelay{}
	}
	return ap.in.WriteBackoff.Delay(component, object, need)
}

// performUnlessDelayed carries out one step, unless its object was written too often.
func (ap applier) performUnlessDelayed(ctx context.Context, s step, out *application) error {
	component, object := s.want.Component, s.want.Object
	p := ap.delayOf(component, object, needOf(s.action.Verb))
	if !s.delayed {
		written := len(out.writes) + len(out.recreated)
		if err := ap.perform(ctx, s, out); err != nil {
			return err
		}
		if len(out.writes)+len(out.recreated) > written {
			ap.noteWritten(s)
			p = ap.delayOf(component, object, InSync)
		}
	}
	if p.Times == 0 {
		return nil
	}
	if out.keepsChanging.Name == "" {
		out.keepsChanging = keepsChanging(s, p)
	}
	out.requeueAfter = sooner(out.requeueAfter, max(p.Wait, time.Second))
	return nil
}

// mustWait reports whether the object of a step is to be written, and was too often.
func (ap applier) mustWait(s step) bool {
	return needOf(s.action.Verb) == Wanted && ap.delayOf(s.want.Component, s.want.Object, Wanted).Wait > 0
}

// delayTogether holds all objects of a component whose rendering has changed, if one of
// them is held: either all are changed or none.
func delayTogether(steps []step) {
	if !slices.ContainsFunc(steps, func(s step) bool { return s.delayed && s.action.Verb == ownership.Update }) {
		return
	}
	for i, s := range steps {
		if s.action.Verb == ownership.Update {
			steps[i].delayed = true
		}
	}
}

// needOf returns whether a verb writes.
func needOf(v ownership.Verb) Need {
	switch v {
	case ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
		return Wanted
	case ownership.Keep, ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
	}
	return InSync
}

// noteWritten notes that an object was written.
func (ap applier) noteWritten(s step) {
	if ap.in.WriteBackoff == nil {
		return
	}
	why := WriteCause{Verb: s.action.Verb}
	switch {
	case s.action.Verb == ownership.Repair && s.live != nil:
		why.Field, why.Manager = ownership.Lost(s.want, s.live)
	case s.action.Verb == ownership.Update && s.live != nil:
		why.Field = ownership.Differs(s.want, s.live)
	}
	// It is repeated later, when a Secret may be another one, or not known any more.
	why.Field = ap.in.Redactor.Text(why.Field)
	ap.in.WriteBackoff.Wrote(s.want.Component, s.want.Object, why)
}

// keepsChanging is the outcome of a component one of whose objects was written too often.
func keepsChanging(s step, p WriteDelay) status.Component {
	return status.Component{
		Name: s.want.Component, State: status.Retrying, Reason: status.ReasonKeepsChanging,
		Message: fmt.Sprintf("%s: %s (%s)", s.want.Ref(), p.text(), s.want.Position),
	}
}

// text says what happens to the object, and how often. It stays the same while that
// goes on, but for the order of magnitude.
func (p WriteDelay) text() string {
	field := p.Why.Field
	if field == "" {
		field = "it"
	}
	what := field + " is rendered differently each time, from something that keeps changing"
	switch {
	case p.Why.Grows:
		what = "its component has another new object each time, from something that keeps changing"
	case p.Why.Verb == ownership.Create:
		what = "it is deleted each time it was created"
	case p.Why.Verb == ownership.Repair:
		who := "somebody else"
		if p.Why.Manager != "" {
			who = "manager " + p.Why.Manager
		}
		what = field + " is changed by " + who + " each time it was corrected"
	case p.Why.Verb == ownership.Adopt:
		what = "it is taken by somebody else each time it was adopted"
	}
	return fmt.Sprintf("%s, at least %d times in a row; it is written in growing pauses of up to %s", what, magnitude(p.Times),
		strings.TrimSuffix(p.Longest.String(), "0s"))
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
