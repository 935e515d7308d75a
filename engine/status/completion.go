// Package status turns the result of a rollout into the status of a custom resource: a phase,
// conditions, and an entry for each component. It is pure: callers pass the time, and it
// neither reads nor writes a cluster.
//
//	Completion --Build--> status  (written only if it differs, see Equal)
//
// # Phases
//
//	Created ─> Reconciling ─> Waiting ─> Ready <─> Scaling
//	                │            │         │
//	                └────────────┴─> Failed┘         any ─> Deleting
//
// These are the usual transitions; docs/reasons.md has all of them, which a test checks.
//
//	Created      the inventory is stored, and no object is written yet
//	Reconciling  the last rollout wrote or deleted something
//	Waiting      it wrote nothing, and something is not ready
//	Scaling      it was Ready, and only numbers of replicas were changed since
//	Failed       a person has to change something
//	Deleting     the resource is deleted, its objects are on their way out
//
// Conditions have the meaning that kstatus and kubectl wait give them: Ready is true only for the
// generation that it names, Reconciling is true while there is something to do, Stalled is true
// when a person has to act.
//
// State is the only word for how far a component is: render, the dry runs and events use it, too.
// What it results from has words of its own: program.Rendering says whether the component could be
// evaluated, program.Verdict what a predicate says, and verify.Health how an object is.
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
	// Retrying: the cluster did not answer, or refused something for now. The engine retries.
	Retrying State = "Retrying"
	// Failed: a person has to change something.
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
	ReasonVerified          Reason = "Verified"
	ReasonProgressing       Reason = "Progressing"
	ReasonDependency        Reason = "WaitingForDependency"
	ReasonRequirement       Reason = "WaitingForRequirement"
	ReasonValue             Reason = "WaitingForValue"
	ReasonFieldNotSet       Reason = "FieldNotSet"
	ReasonKindNotServed     Reason = "KindNotServed"
	ReasonObjectGoing       Reason = "WaitingForDeletion"
	ReasonNotReady          Reason = "NotReady"
	ReasonObjectFailed      Reason = "ObjectFailed"
	ReasonPredicateBroken   Reason = "PredicateBroken"
	ReasonInvalidObject     Reason = "InvalidObject"
	ReasonOwnedByAnother    Reason = "OwnedByAnother"
	ReasonApplyFailed       Reason = "ApplyFailed"
	ReasonKindUnreadable    Reason = "KindUnreadable"
	ReasonObjectRejected    Reason = "ObjectRejected"
	ReasonDuplicateObject   Reason = "DuplicateObject"
	ReasonKeepsChanging     Reason = "KeepsChanging"
	ReasonExcluded          Reason = "Excluded"
	ReasonUndecided         Reason = "Undecided"
	ReasonInvalidSpec       Reason = "InvalidSpec"
	ReasonInvalidPackage    Reason = "InvalidPackage"
	ReasonInvalidConfig     Reason = "InvalidConfig"
	ReasonStatusUnreadable  Reason = "StatusUnreadable"
	ReasonHookFailed        Reason = "HookFailed"
	ReasonHooksRunning      Reason = "HooksRunning"
	ReasonPackageMissing    Reason = "PackageMissing"
	ReasonPackageBroken     Reason = "PackageBroken"
	ReasonRevisionUnusable  Reason = "RevisionUnusable"
	ReasonTimedOut          Reason = "TimedOut"
	ReasonEvaluationFailed  Reason = "EvaluationFailed"
	ReasonInternalError     Reason = "InternalError"
	ReasonEvaluationLimit   Reason = "EvaluationLimit"
	ReasonEvaluationTooSlow Reason = "EvaluationTooSlow"
	ReasonStatusTooLarge    Reason = "StatusTooLarge"
	ReasonPruning           Reason = "Pruning"
	ReasonPruneRefused      Reason = "PruneRefused"
	ReasonDeleteFailed      Reason = "DeleteFailed"
	ReasonDeleting          Reason = "Deleting"
	ReasonReady             Reason = "Ready"
)

// A Component is the outcome of one component.
type Component struct {
	Name    string
	State   State
	Reason  Reason
	Message string
	// Timeout is how long it may take to be Done; 0 is forever.
	Timeout time.Duration
	// TimedOutIn and Awaited are the state and reason that it had when its timeout ended, if it
	// did.
	TimedOutIn State
	Awaited    Reason
	// AwaitedMessage is the message that it had then.
	AwaitedMessage string
	// WaitsFor are the dependencies that are not as far as this component needs them.
	WaitsFor []string
	// DependsOn are its dependencies if one of them, or it, has no objects: the inventory has those between objects.
	DependsOn []string
	// Healthy says of a Waiting component that its objects exist, are healthy and need no
	// change: it runs while another component changes.
	Healthy bool
}

// IsZero reports whether there is no component, as in the Fault of a Completion without one.
func (c Component) IsZero() bool { return c.State == "" && c.Reason == "" }

// Cause returns the reason of a component, or the one that it had when its timeout ended.
func (c Component) Cause() Reason {
	if c.Reason == ReasonTimedOut {
		return c.Awaited
	}
	return c.Reason
}

// StalledBy returns reason and message of the condition Stalled, or nothing if it is not true.
func StalledBy(status map[string]any) (Reason, string) {
	if c := Condition(status, ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return Reason(c.Reason), c.Message
	}
	return "", ""
}

// TimedOut returns the component as failed because its timeout has ended.
func (c Component) TimedOut() Component {
	c.TimedOutIn, c.Awaited, c.AwaitedMessage = c.State, c.Reason, c.Message
	c.Message = fmt.Sprintf("not ready within %s: %s", c.Timeout, c.Message)
	c.State, c.Reason = Failed, ReasonTimedOut
	return c
}

// WithoutTimeout returns the component as it would be if it might wait forever.
func (c Component) WithoutTimeout() Component {
	if c.Reason == ReasonTimedOut {
		c.State, c.Reason, c.Message = c.TimedOutIn, c.Awaited, c.AwaitedMessage
		c.TimedOutIn, c.Awaited, c.AwaitedMessage = "", "", ""
	}
	c.Timeout = 0
	return c
}

// awaits returns the state of a component, or the one that it had when its timeout ended.
func (c Component) awaits() State {
	if c.TimedOutIn != "" {
		return c.TimedOutIn
	}
	return c.State
}

// counts reports whether the component should exist.
func (c Component) counts() bool { return c.State != Excluded && c.State != Deleting }

// Done reports whether nothing is left to do for the component.
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

// A Completion is the result of one rollout.
type Completion struct {
	// Components are the outcomes in the author's order.
	Components []Component
	// Fault is what is wrong with the resource, the package or the cluster as a whole; its Reason
	// is empty if nothing is. A fault with state Retrying passes by itself.
	Fault Component
	// Pruning says what is still to be deleted, or "".
	Pruning string
	// Patches are the names of the patches in effect.
	Patches []string
	// Change is what was written.
	Change Change
	// Deleting says that the resource is being deleted.
	Deleting bool
	// Planned says that the rollout has not written anything yet.
	Planned bool
	// Refused says that the API server refused to delete what Pruning names.
	Refused bool
	// Own are the author's status fields; nil says that they were not evaluated.
	Own map[string]any
}

// needsPerson reports whether a person has to act before a deletion goes on.
func (c Completion) needsPerson() bool { return c.stopped() || c.anyIn(Failed) }

// Ready reports whether everything that should exist is healthy and everything else is gone.
func (c Completion) Ready() bool {
	if c.Deleting || c.Planned || !c.Fault.IsZero() || c.Pruning != "" {
		return false
	}
	return !slices.ContainsFunc(c.Components, func(comp Component) bool { return !comp.Done() })
}

// tally returns how many of the components that should exist are healthy, as in "2/3".
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

// byUrgency are the states of components that are not done, the most urgent one first.
var byUrgency = []State{Failed, Retrying, Applied, Held, Waiting, Deleting}

// unfinished returns the components that are not done, the most urgent one first: failed before
// waiting, and a cause before the components that wait for it.
func (c Completion) unfinished() []Component {
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
	unfinished := c.unfinished()
	switch {
	case len(unfinished) > 0:
		return unfinished[0].Reason, c.about(unfinished)
	case c.Refused:
		return ReasonDeleteFailed, c.Pruning
	case c.Planned:
		return ReasonProgressing, "all components are up to date: " + c.tally()
	}
	return ReasonPruning, c.Pruning
}

// stalled returns why a person has to act: the fault of the whole, or else the most urgent
// component.
func (c Completion) stalled() (Reason, string) {
	if c.stopped() {
		return c.Fault.Reason, c.Fault.Message
	}
	unfinished := c.unfinished()
	return unfinished[0].Reason, c.about(unfinished)
}

// stopped reports whether there is a fault that does not pass by itself.
func (c Completion) stopped() bool { return !c.Fault.IsZero() && c.Fault.State != Retrying }

// about describes the first component, and names or counts those that wait for it and the others.
func (c Completion) about(unfinished []Component) string {
	worst := unfinished[0]
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
	switch more := len(unfinished) - 1 - len(blocked); more {
	case 0:
	case 1:
		b.WriteString("; and 1 more component is not ready")
	default:
		fmt.Fprintf(&b, "; and %d more components are not ready", more)
	}
	return b.String()
}
