// Package status turns the outcome of a rollout into what a custom resource
// reports: a phase, conditions, and a line for each component. It is pure: the
// time is given to it, and it neither reads nor writes a cluster.
//
//	Completion --Build--> status  (only ever written when it differs, see Same)
//
// # Phases
//
//	Created ─> Reconciling ─> Waiting ─> Ready <─> Scaling
//	                │            │         │
//	                └────────────┴─> Failed┘         any ─> Deleting
//
// These are the usual ways; docs/reasons.md has them all, and a test that they are.
//
//	Created      what is to be done is stored, and its first object is not written yet
//	Reconciling  the last rollout wrote or deleted something
//	Waiting      it wrote nothing, and something is not ready
//	Scaling      it was Ready, and only numbers of replicas were changed since
//	Failed       a person has to change something
//	Deleting     the resource is deleted, its objects are on their way out
//
// Conditions have the meaning that kstatus and kubectl wait give them: Ready is
// true only for the generation that it names, Reconciling is true while there is
// something to do, Stalled is true when a person has to act.
package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is how far a component is.
type State string

// The states of a component.
const (
	// Verified: applied, and healthy.
	Verified State = "Verified"
	// Applied: applied, and not healthy yet.
	Applied State = "Applied"
	// Waiting: not applied, because something has to come first.
	Waiting State = "Waiting"
	// Retrying: the cluster could not be asked, or refused something for now. It is
	// tried again by itself.
	Retrying State = "Retrying"
	// Failed: it needs a change.
	Failed State = "Failed"
	// Excluded: it should not exist.
	Excluded State = "Excluded"
	// Held: whether it should exist cannot be decided; it is left as it is.
	Held State = "Held"
	// Deleting: its objects are being deleted.
	Deleting State = "Deleting"
)

// Reason says why a component, or the whole resource, is in its state. The
// catalogue in docs/reasons.md has an entry for each.
type Reason string

// The reasons.
const (
	ReasonVerified         Reason = "Verified"
	ReasonProgressing      Reason = "Progressing"
	ReasonDependency       Reason = "WaitingForDependency"
	ReasonRequirement      Reason = "WaitingForRequirement"
	ReasonValue            Reason = "WaitingForValue"
	ReasonFieldNotSet      Reason = "FieldNotSet"
	ReasonKindNotServed    Reason = "KindNotServed"
	ReasonObjectGoing      Reason = "WaitingForDeletion"
	ReasonNotReady         Reason = "NotReady"
	ReasonObjectFailed     Reason = "ObjectFailed"
	ReasonPredicateBroken  Reason = "PredicateBroken"
	ReasonInvalidObject    Reason = "InvalidObject"
	ReasonOwnedByAnother   Reason = "OwnedByAnother"
	ReasonApplyFailed      Reason = "ApplyFailed"
	ReasonKindUnreadable   Reason = "KindUnreadable"
	ReasonObjectRejected   Reason = "ObjectRejected"
	ReasonDuplicateObject  Reason = "DuplicateObject"
	ReasonKeepsChanging    Reason = "KeepsChanging"
	ReasonExcluded         Reason = "Excluded"
	ReasonUndecided        Reason = "Undecided"
	ReasonInvalidSpec      Reason = "InvalidSpec"
	ReasonInvalidPackage   Reason = "InvalidPackage"
	ReasonInvalidConfig    Reason = "InvalidConfig"
	ReasonStatusUnreadable Reason = "StatusUnreadable"
	ReasonHookFailed       Reason = "HookFailed"
	ReasonHooksRunning     Reason = "HooksRunning"
	ReasonPackageMissing   Reason = "PackageMissing"
	ReasonPackageBroken    Reason = "PackageBroken"
	ReasonTimedOut         Reason = "TimedOut"
	ReasonEvaluationFailed Reason = "EvaluationFailed"
	ReasonInternalError    Reason = "InternalError"
	ReasonEvaluationLimit  Reason = "EvaluationLimit"
	ReasonStatusTooLarge   Reason = "StatusTooLarge"
	ReasonPruning          Reason = "Pruning"
	ReasonPruneRefused     Reason = "PruneRefused"
	ReasonDeleteFailed     Reason = "DeleteFailed"
	ReasonDeleting         Reason = "Deleting"
	ReasonReady            Reason = "Ready"
)

// A Component is the outcome of one component.
type Component struct {
	Name    string
	State   State
	Reason  Reason
	Message string
	// Timeout is how long it may be unsettled; 0 is for ever.
	Timeout time.Duration
	// TimedOutIn is the state in which its time ended, if it did, and Awaited the
	// reason that it had.
	TimedOutIn State
	Awaited    Reason
	// WaitsFor are the components that are not as far as this one needs them.
	WaitsFor []string
	// Healthy says of one that is Waiting that nothing is to be changed about it, and that
	// its objects are there and healthy: it runs while another component is changed.
	Healthy bool
}

// IsZero reports whether there is no component, as in the Fault of a Completion without one.
func (c Component) IsZero() bool { return c.State == "" && c.Reason == "" }

// Cause returns the reason of a component apart from having had its time.
func (c Component) Cause() Reason {
	if c.Reason == ReasonTimedOut {
		return c.Awaited
	}
	return c.Reason
}

// Stalled returns what the status of a resource says, if it is stalled for a reason, or "".
func Stalled(status map[string]any, reason Reason) string {
	if c := Condition(status, ConditionStalled); c != nil && c.Status == metav1.ConditionTrue && c.Reason == string(reason) {
		return c.Message
	}
	return ""
}

// TimedOut returns the component as one that has had its time.
func (c Component) TimedOut() Component {
	c.Message = fmt.Sprintf("not ready within %s: %s", c.Timeout, c.Message)
	c.TimedOutIn, c.Awaited = c.State, c.Reason
	c.State, c.Reason = Failed, ReasonTimedOut
	return c
}

// awaits returns the state that a component is in but for its time.
func (c Component) awaits() State {
	if c.TimedOutIn != "" {
		return c.TimedOutIn
	}
	return c.State
}

// counts reports whether the component is part of what should be there.
func (c Component) counts() bool { return c.State != Excluded && c.State != Deleting }

// Done reports whether nothing more is to be done about the component.
func (c Component) Done() bool { return c.State == Verified || c.State == Excluded }

// A Change is what one rollout did to the objects.
type Change string

// The changes, weakest first.
const (
	// Unchanged: nothing was written.
	Unchanged Change = "Unchanged"
	// Rescaled: only numbers of replicas were changed.
	Rescaled Change = "Rescaled"
	// Changed: something else was written.
	Changed Change = "Changed"
)

// A Completion is the outcome of one rollout: the CompletionState of older
// frameworks.
type Completion struct {
	// Components are the outcomes in the author's order.
	Components []Component
	// Fault is what is wrong with the resource, the package or the cluster as a
	// whole; its Reason is empty when nothing is. One that is Retrying passes by
	// itself.
	Fault Component
	// Pruning says what is still to be deleted, or "".
	Pruning string
	// Patches are the names of the patches in effect.
	Patches []string
	// Change is what was written.
	Change Change
	// Deleting says that the resource is being deleted.
	Deleting bool
	// Planned says that this is what is about to be done, and nothing of it was yet.
	Planned bool
	// Refused says that the API server refused to delete what Pruning names.
	Refused bool
	// Own are the author's status fields; nil says that they were not evaluated.
	Own map[string]any
}

// needsPerson reports whether a person has to act before a deletion goes on.
func (c Completion) needsPerson() bool { return c.stopped() || c.anyIn(Failed) }

// Ready reports whether everything that should be there is healthy and nothing
// else is left.
func (c Completion) Ready() bool {
	if c.Deleting || c.Planned || !c.Fault.IsZero() || c.Pruning != "" {
		return false
	}
	for _, comp := range c.Components {
		if !comp.Done() {
			return false
		}
	}
	return true
}

// tally returns "2/3": how many of the components that should be there are
// healthy.
func (c Completion) tally() string {
	verified, all := 0, 0
	for _, comp := range c.Components {
		if !comp.counts() {
			continue
		}
		all++
		if comp.State == Verified || comp.Healthy {
			verified++
		}
	}
	return fmt.Sprintf("%d/%d", verified, all)
}

// byUrgency are the states that need something, what to look at first in front.
var byUrgency = []State{Failed, Retrying, Applied, Held, Waiting, Deleting}

// unsettled returns the components that a person should look at, the first one
// first: one that failed before one that waits, and one that others wait for before
// those.
func (c Completion) unsettled() []Component {
	urgency := func(c Component) int {
		n := 2 * slices.Index(byUrgency, c.State)
		if len(c.WaitsFor) > 0 {
			n++
		}
		return n
	}
	out := slices.DeleteFunc(slices.Clone(c.Components), Component.Done)
	slices.SortStableFunc(out, func(a, b Component) int { return urgency(a) - urgency(b) })
	return out
}

// summary returns reason and message of the resource as a whole.
func (c Completion) summary() (Reason, string) {
	switch {
	case !c.Fault.IsZero():
		return c.Fault.Reason, c.Fault.Message
	case c.Ready():
		return ReasonReady, "all components are verified: " + c.tally()
	}
	unsettled := c.unsettled()
	switch {
	case len(unsettled) > 0:
		return unsettled[0].Reason, c.about(unsettled)
	case c.Refused:
		return ReasonDeleteFailed, c.Pruning
	case c.Planned:
		return ReasonProgressing, "all components are up to date: " + c.tally()
	}
	return ReasonPruning, c.Pruning
}

// stalled returns why a person has to act on a completion that has failed: what is
// wrong with the whole, or else with its first failed component.
func (c Completion) stalled() (Reason, string) {
	if c.stopped() {
		return c.Fault.Reason, c.Fault.Message
	}
	unsettled := c.unsettled()
	return unsettled[0].Reason, c.about(unsettled)
}

// stopped reports whether what is wrong with the whole does not pass by itself.
func (c Completion) stopped() bool { return !c.Fault.IsZero() && c.Fault.State != Retrying }

// about says what is wrong with the first of some components, which ones wait for
// it, and that there are more.
func (c Completion) about(unsettled []Component) string {
	worst := unsettled[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", worst.Name, worst.Message)
	first := slices.IndexFunc(c.Components, func(c Component) bool { return c.Name == worst.Name })
	blocked := blockingOf(c.Components).by(first)
	switch len(blocked) {
	case 0:
	case 1:
		fmt.Fprintf(&b, "; %s waits for it", names(blocked))
	default:
		fmt.Fprintf(&b, "; %s wait for it", names(blocked))
	}
	switch more := len(unsettled) - 1 - len(blocked); more {
	case 0:
	case 1:
		b.WriteString("; and 1 more component is not ready")
	default:
		fmt.Fprintf(&b, "; and %d more components are not ready", more)
	}
	return b.String()
}
