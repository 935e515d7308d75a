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
	"strings"
	"time"
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
	ReasonKindNotServed    Reason = "KindNotServed"
	ReasonObjectGoing      Reason = "WaitingForDeletion"
	ReasonNotReady         Reason = "NotReady"
	ReasonObjectFailed     Reason = "ObjectFailed"
	ReasonPredicateBroken  Reason = "PredicateBroken"
	ReasonInvalidObject    Reason = "InvalidObject"
	ReasonOwnedByAnother   Reason = "OwnedByAnother"
	ReasonApplyFailed      Reason = "ApplyFailed"
	ReasonObjectRejected   Reason = "ObjectRejected"
	ReasonExcluded         Reason = "Excluded"
	ReasonUndecided        Reason = "Undecided"
	ReasonInvalidSpec      Reason = "InvalidSpec"
	ReasonInvalidPackage   Reason = "InvalidPackage"
	ReasonInvalidConfig    Reason = "InvalidConfig"
	ReasonHookFailed       Reason = "HookFailed"
	ReasonHooksRunning     Reason = "HooksRunning"
	ReasonPackageMissing   Reason = "PackageMissing"
	ReasonTimedOut         Reason = "TimedOut"
	ReasonEvaluationFailed Reason = "EvaluationFailed"
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
}

// counts reports whether the component is part of what should be there.
func (c Component) counts() bool { return c.State != Excluded && c.State != Deleting }

// Settled reports whether nothing more is to be done about the component.
func (c Component) Settled() bool { return c.State == Verified || c.State == Excluded }

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
	// Own are the author's status fields.
	Own map[string]any
}

// Ready reports whether everything that should be there is healthy and nothing
// else is left.
func (c Completion) Ready() bool {
	if c.Deleting || c.Planned || c.Fault.Reason != "" || c.Pruning != "" {
		return false
	}
	for _, comp := range c.Components {
		if !comp.Settled() {
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
		if comp.State == Verified {
			verified++
		}
	}
	return fmt.Sprintf("%d/%d", verified, all)
}

// worst returns the component that a person should look at first: a failed one,
// else the first that is not settled.
func (c Completion) worst() (Component, int) {
	var found []Component
	for _, want := range []State{Failed, Retrying, Applied, Held, Waiting, Deleting} {
		for _, comp := range c.Components {
			if comp.State == want {
				found = append(found, comp)
			}
		}
	}
	if len(found) == 0 {
		return Component{}, 0
	}
	return found[0], len(found) - 1
}

// summary returns reason and message of the resource as a whole.
func (c Completion) summary() (Reason, string) {
	switch {
	case c.Fault.Reason != "":
		return c.Fault.Reason, c.Fault.Message
	case c.Ready():
		return ReasonReady, "all components are verified: " + c.tally()
	}
	worst, more := c.worst()
	switch {
	case worst.Name == "" && c.Refused:
		return ReasonDeleteFailed, c.Pruning
	case worst.Name == "" && c.Planned:
		return ReasonProgressing, "all components are up to date: " + c.tally()
	case worst.Name == "":
		return ReasonPruning, c.Pruning
	}
	return worst.Reason, about(worst, more)
}

// stalled returns why a person has to act on a completion that has failed: what is
// wrong with the whole, or else with its first failed component.
func (c Completion) stalled() (Reason, string) {
	if c.stopped() {
		return c.Fault.Reason, c.Fault.Message
	}
	worst, more := c.worst()
	return worst.Reason, about(worst, more)
}

// stopped reports whether what is wrong with the whole does not pass by itself.
func (c Completion) stopped() bool { return c.Fault.Reason != "" && c.Fault.State != Retrying }

// about says what is wrong with a component, and that there are more.
func about(worst Component, more int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", worst.Name, worst.Message)
	switch more {
	case 0:
	case 1:
		b.WriteString("; and 1 more component is not ready")
	default:
		fmt.Fprintf(&b, "; and %d more components are not ready", more)
	}
	return b.String()
}
