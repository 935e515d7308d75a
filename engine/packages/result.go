package packages

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/rollout"
)

// A Reason is why a condition of a Package is as it is; events have them, too.
type Reason string

// The reasons.
const (
	// ReasonLoaded: the content of the source is accepted.
	ReasonLoaded Reason = "Loaded"
	// ReasonServed: the content of the source is served.
	ReasonServed Reason = "Served"
	// ReasonInstalled: the CustomResourceDefinition is installed.
	ReasonInstalled Reason = "Installed"
	// ReasonInvalid: the spec cannot be read, as it may be of a newer version.
	ReasonInvalid Reason = "InvalidSpec"
	// ReasonSourceNotFound: the object with the files does not exist.
	ReasonSourceNotFound Reason = "SourceNotFound"
	// ReasonSourceUnreadable: the object with the files cannot be read.
	ReasonSourceUnreadable Reason = "SourceUnreadable"
	// ReasonFetching: the content is being fetched for the first time.
	ReasonFetching Reason = "Fetching"
	// ReasonRegistryUnavailable: a registry does not answer, or has failed.
	ReasonRegistryUnavailable Reason = "RegistryUnavailable"
	// ReasonRegistryUnauthorized: a registry wants other credentials.
	ReasonRegistryUnauthorized Reason = "RegistryUnauthorized"
	// ReasonDigestMismatch: a registry has sent another content than the digest names.
	ReasonDigestMismatch Reason = "DigestMismatch"
	// ReasonNotModule: what the reference names is not a CUE module.
	ReasonNotModule Reason = "NotAModule"
	// ReasonSourceTooLarge: the module exceeds a limit.
	ReasonSourceTooLarge Reason = "SourceTooLarge"
	// ReasonInvalidReference: the reference or the configuration of registries is wrong, or the registry leads to plain HTTP.
	ReasonInvalidReference Reason = "InvalidReference"
	// ReasonUnsigned: the module, or one that it depends on, has no signature, and one is demanded.
	ReasonUnsigned Reason = "Unsigned"
	// ReasonSignatureInvalid: it has some, and none that is accepted.
	ReasonSignatureInvalid Reason = "SignatureInvalid"
	// ReasonSourceNotAllowed: the operator takes no content from such a source.
	ReasonSourceNotAllowed Reason = "SourceNotAllowed"
	// ReasonBroken: the content has faults.
	ReasonBroken Reason = "PackageBroken"
	// ReasonCheckFailed: the check was ended, because it took too much time or memory.
	ReasonCheckFailed Reason = "CheckFailed"
	// ReasonKindTaken: another package serves the kind.
	ReasonKindTaken Reason = "KindTaken"
	// ReasonKindInUse: the content has another kind, and there are resources of the present one.
	ReasonKindInUse Reason = "KindInUse"
	// ReasonCRDRefused: the API server refuses the CustomResourceDefinition.
	ReasonCRDRefused Reason = "CRDRefused"
	// ReasonForeignCRD: the CustomResourceDefinition of the cluster is not that of a package.
	ReasonForeignCRD Reason = "ForeignCRD"
	// ReasonCRDNotInstalled: the CustomResourceDefinition is not installed yet.
	ReasonCRDNotInstalled Reason = "CRDNotInstalled"
	// ReasonNotKept: the content could not be kept as a revision.
	ReasonNotKept Reason = "NotKept"
	// ReasonNotServed: the controller has not begun.
	ReasonNotServed Reason = "NotServed"
	// ReasonAccountRefused: the operator may not act as the ServiceAccount, or this lacks permissions.
	ReasonAccountRefused Reason = "ServiceAccountRefused"
	// ReasonRightsMissing: the operator itself lacks permissions, and the Package names no ServiceAccount.
	ReasonRightsMissing Reason = "RightsMissing"
	// ReasonPaused: the Package is paused, and its source has changed.
	ReasonPaused Reason = "Paused"
	// ReasonAwaitingApproval: the content has passed its checks, and nobody has approved it.
	ReasonAwaitingApproval Reason = "AwaitingApproval"
	// ReasonPlanning: the plan of the content over all live resources is being made.
	ReasonPlanning Reason = "Planning"
	// ReasonLimitExceeded: the content would delete or recreate more objects than its limits allow.
	ReasonLimitExceeded Reason = "LimitExceeded"
	// ReasonPlanFailed: nobody can say at present what the content would delete and recreate.
	ReasonPlanFailed Reason = "PlanFailed"
	// ReasonCanaryProgressing: some resources get the content first, and are not all ready.
	ReasonCanaryProgressing Reason = "CanaryProgressing"
	// ReasonCanaryReady: they are, and have to be for some time before the others get it.
	ReasonCanaryReady Reason = "CanaryReady"
	// ReasonCanaryRolledBack: they were not, and have the version before again.
	ReasonCanaryRolledBack Reason = "CanaryRolledBack"
	// ReasonCanaryIncompatible: two versions cannot be served side by side, because their definitions contradict each other.
	ReasonCanaryIncompatible Reason = "CanaryIncompatible"
	// ReasonCanaryPromoted: the content of a canary is served to all resources; it is of an event.
	ReasonCanaryPromoted Reason = "CanaryPromoted"
	// ReasonDeleting: the Package is deleted, and waits for its resources.
	ReasonDeleting Reason = "Deleting"
)

// A ForeignCRDError says that the CustomResourceDefinition of a kind is not that of a package.
type ForeignCRDError struct{ Name string }

// Error names the definition.
func (e *ForeignCRDError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s exists and was not made from a package; to have it replaced, set its label operetta.dev/package", e.Name)
}

// A stage is how far a content has come.
type stage int

// The stages.
const (
	// reading: the source cannot be read.
	reading stage = iota
	// holding: the content is held back on purpose.
	holding
	// loading: the content is not accepted.
	loading
	// defining: the definition is not installed.
	defining
	// serving: the content is accepted and not served.
	serving
)

// A problem is why the content of a source is not served.
type problem struct {
	stage   stage
	reason  Reason
	message string
	faults  fault.Faults
	// passes says that it passes by itself, and is nothing about the content.
	passes bool
	// person says that a person has to act, although the content is held back on purpose.
	person bool
	// again is when it is tried again although nothing has changed, 0 for never.
	again time.Duration
	// err is what is tried again with a growing delay.
	err error
}

// fresh returns a copy of a problem, or nil.
func (p *problem) fresh() *problem {
	if p == nil {
		return nil
	}
	out := *p
	return &out
}

// addMessage adds to what is said about a problem.
func (p *problem) addMessage(text string) { p.message += "; " + text }

// addError notes an error that is tried again, whatever else is wrong.
func (o *result) addError(err error) {
	if o.problem == nil {
		o.problem = &problem{stage: serving, reason: ReasonNotServed, message: err.Error()}
	}
	o.problem.err = errors.Join(o.problem.err, err)
}

// needsPerson reports whether a problem does not pass by itself.
func (p *problem) needsPerson() bool {
	return p.err == nil && (p.person || p.stage != holding) && !p.passes
}

// location says in one line what is wrong, for the status of custom resources. It leaves out messages: CUE
// quotes values, and people who may read the resources need not be allowed to read the Package.
func (p *problem) location(name string) string {
	if p.stage == holding || p.passes {
		return ""
	}
	where := string(p.reason)
	if len(p.faults) > 0 {
		f := p.faults[0]
		where = locationOf(f.Position.String(), f.Path, len(p.faults), where)
	}
	return where + seeStatus(name)
}

// notKept returns why a content is not kept as a revision. One that is too large is not tried again before it changes.
func notKept(err error) *problem {
	if _, large := errors.AsType[*revisionSizeError](err); large {
		return &problem{stage: loading, reason: ReasonSourceTooLarge, message: err.Error()}
	}
	return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
}

// notInstalled returns why a definition is not installed.
func notInstalled(err error) *problem {
	out := &problem{stage: defining, reason: ReasonCRDNotInstalled, message: err.Error(), err: err}
	_, foreign := errors.AsType[*ForeignCRDError](err)
	_, held := errors.AsType[*KindHeldError](err)
	switch {
	case held:
		out.reason, out.err, out.again = ReasonKindTaken, nil, sourceAgain
	case foreign:
		out.reason, out.err, out.again = ReasonForeignCRD, nil, sourceAgain
	case apierrors.IsInvalid(err):
		out.reason, out.err, out.again = ReasonCRDRefused, nil, refusedAgain
	}
	return out
}

// result is what came of one reconcile.
type result struct {
	// problem is why the content of the source is not served, or nil.
	problem *problem
	// unread says that the content could not be read, so that the problem is nothing about what was read before.
	unread bool
	// pending says that an examination has to end first.
	pending bool
	// planned says that the content has come to its plan.
	planned bool
	// undecided says why this process cannot serve what was accepted last, although it has not decided that nobody may; nil if it has.
	undecided error
	// waits says what a deleted Package waits for, or is "".
	waits string
	// gone says that a deleted Package has nothing left to do.
	gone bool
	// waitAgain is when a deleted Package looks again.
	waitAgain time.Duration
}

// err returns what is to be tried again with a growing delay.
func (o *result) err() error {
	if o.problem == nil {
		return nil
	}
	return o.problem.err
}

// again returns when the next reconcile is due, 0 for never.
func (o *result) again(s *state, now time.Time) time.Duration {
	out := o.waitAgain
	if at := s.content.askAgain; !at.IsZero() {
		out = rollout.ShortestWait(out, max(time.Second, at.Sub(now)))
	}
	if s.served != nil {
		out = rollout.ShortestWait(out, countAgain)
	}
	if o.problem != nil {
		out = rollout.ShortestWait(out, o.problem.again)
	}
	return out
}
