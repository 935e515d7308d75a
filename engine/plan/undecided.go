package plan

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// A Cause is why a plan cannot say all of what becomes of the objects of a resource.
type Cause string

// The causes.
const (
	// Unread: the API server has not returned something.
	Unread Cause = "unread"
	// NoWorker: there was nobody to evaluate the package.
	NoWorker Cause = "noWorker"
	// Panicked: planning has panicked.
	Panicked Cause = "panicked"
	// EvaluationLimit: an evaluation takes too much.
	EvaluationLimit Cause = "evaluationLimit"
	// EvaluationFailed: an evaluation has no result.
	EvaluationFailed Cause = "evaluationFailed"
	// NotValid: the resource or its configuration does not satisfy the version.
	NotValid Cause = "invalid"
	// NotAtRest: objects change without end.
	NotAtRest Cause = "notAtRest"
	// Held: whether a component should exist cannot be decided.
	Held Cause = "held"
	// Blocked: a component waits or fails, and what it renders is not known.
	Blocked Cause = "blocked"
)

// Passes reports whether a later plan of the same may say more. In that case, the change may concern objects that
// this plan does not name.
func (c Cause) Passes() bool {
	switch c {
	case Unread, NoWorker, Panicked:
		return true
	case EvaluationLimit, EvaluationFailed, NotValid, NotAtRest, Held, Blocked:
	}
	return false
}

// A side is what one version has come to with a resource.
type side struct {
	// state is the resource afterwards, or nil if it is gone.
	state *unstructured.Unstructured
	// last is the result of the last evaluation, and evaluationErr why that has none.
	last          program.Rollout
	evaluationErr error
	// failure is why the last reconcile failed, and restless says that objects still change.
	failure  error
	restless bool
}

// stopped returns why a version decides nothing about any component, or "".
func (s side) stopped() Cause {
	_, unavailable := errors.AsType[*program.UnavailableError](s.evaluationErr)
	_, over := errors.AsType[*program.LimitError](s.evaluationErr)
	reason, _ := status.StalledBy(statusOf(s.state))
	switch {
	case unavailable:
		return NoWorker
	case over, reason == status.ReasonEvaluationLimit, reason == status.ReasonEvaluationTooSlow:
		return EvaluationLimit
	case s.evaluationErr != nil:
		return EvaluationFailed
	case len(s.last.Invalid)+len(s.last.Misconfigured) > 0:
		return NotValid
	case s.restless:
		return NotAtRest
	}
	return ""
}

// mayNotRead reports whether a version has done nothing because the operator may not read a kind that it needs: what the status says of
// components is from before, and once the right is granted, objects are deleted.
func (s side) mayNotRead() bool { return s.failure != nil && unreadable(s.failure) }

// component returns what a version has said of a component, or nil.
func (s side) component(name string) *program.Component {
	for i := range s.last.Components {
		if s.last.Components[i].Name == name {
			return &s.last.Components[i]
		}
	}
	return nil
}

// hasHook reports whether a component may be one of the hooks of a version. Those run once for their content, and what
// they leave behind is deleted only with another content, which the plan shows.
func (s side) hasHook(component string) bool {
	return slices.ContainsFunc(s.last.Hooks, func(h program.Hook) bool { return h.Component.Name == component || h.MayBe(component) })
}

// object returns what a version renders as an object of a component, or nil.
func (s side) object(component, name string) *program.Object {
	c := s.component(component)
	if c == nil {
		return nil
	}
	for i := range c.Objects {
		if c.Objects[i].Name == name {
			return &c.Objects[i]
		}
	}
	return nil
}

// A pending object is one that a version has not decided about, or that it deletes later.
type pending struct {
	ref       cluster.Ref
	component string
	outcome   dryrun.Outcome
	cause     Cause
}

// undecided returns the objects that the new version deletes later or may delete or recreate, and the old one would
// not, and why there may be more of them than the plan has.
func (t *resourcePlan) undecided(ctx context.Context) ([]Object, Cause) {
	if t.Old == nil && isStalledBy(t.subject.live, t.new.stopped()) {
		return nil, "" // nothing shows that the version that runs would decide more
	}
	done := map[cluster.Ref]bool{}
	for _, e := range dryrun.Effects(t.changes, nil) {
		if e.Outcome == dryrun.Deleted || e.Outcome == dryrun.Recreated {
			done[e.Ref.Identity()] = true
		}
	}
	cause, all := t.passing(), t.pending(t.new)
	if cause != "" {
		all = entire(inventoryOf(t.subject.live), t.ref.Namespace, cause)
	} else {
		for _, p := range t.pendingBefore() {
			done[p.ref.Identity()] = true
		}
	}
	var out []Object
	for _, p := range all {
		if done[p.ref.Identity()] || !t.owns(ctx, p.ref) {
			continue
		}
		done[p.ref.Identity()] = true
		if cause == "" {
			cause = p.cause
		}
		out = append(out, t.object(p.component, p.ref, p.outcome))
	}
	return out, cause
}

// isStalledBy reports whether a resource says that it is stalled by a cause.
func isStalledBy(live *unstructured.Unstructured, by Cause) bool {
	reason, _ := status.StalledBy(statusOf(live))
	switch by {
	case NotValid:
		return reason == status.ReasonInvalidSpec || reason == status.ReasonInvalidConfig
	case EvaluationLimit:
		return reason == status.ReasonEvaluationLimit || reason == status.ReasonEvaluationTooSlow
	case EvaluationFailed, NotAtRest, Unread, NoWorker, Panicked, Held, Blocked:
	}
	return false
}

// passing returns why a later plan may say more of the resource, or "".
func (t *resourcePlan) passing() Cause {
	if t.unread.Load() {
		return Unread
	}
	for _, s := range []side{t.new, t.old} {
		if cause := s.stopped(); cause.Passes() {
			return cause
		}
	}
	return ""
}

// pendingBefore returns the pending objects of the old version. That it cannot be evaluated counts only if the
// resource says so, too: the operator may have evaluated what was too much here.
func (t *resourcePlan) pendingBefore() []pending {
	if t.Old == nil || t.subject.live == nil {
		return nil
	}
	switch t.old.stopped() {
	case EvaluationLimit, EvaluationFailed:
		if reason, _ := status.StalledBy(statusOf(t.subject.live)); reason == "" {
			return nil
		}
	case NotValid, NotAtRest, Unread, NoWorker, Panicked, Held, Blocked, "":
	}
	return t.pending(t.old)
}

// pending returns the objects that a version has not decided about.
func (t *resourcePlan) pending(s side) []pending {
	inventory := inventoryOf(s.state)
	if cause := s.stopped(); cause != "" {
		return entire(inventory, t.ref.Namespace, cause)
	}
	rendered := t.rendered(s.last)
	var out []pending
	for _, g := range inventory {
		c := s.component(g.Component)
		if s.hasHook(g.Component) || c != nil && isApplied(s.state, g.Component) && !s.mayNotRead() {
			continue
		}
		for _, e := range g.Objects {
			ref := e.Ref(t.ref.Namespace)
			p := pending{ref: ref, component: g.Component, outcome: Delayed}
			switch {
			case e.Orphan:
				continue
			case c == nil: // the version prunes nothing at present, as one that renders nothing
				p.outcome, p.cause = Undecided, Blocked
			case c.When.Verdict == program.Unknown || c.When.Verdict == program.Broken:
				p.outcome, p.cause = Undecided, Held
			case rendered[ref.Identity()] && t.keeps(s, g.Component, e.Object):
				continue
			case rendered[ref.Identity()] || c.Rendering != program.RenderedComplete:
				p.outcome, p.cause = Undecided, Blocked
			}
			out = append(out, p)
		}
	}
	return out
}

// entire returns all objects of an inventory as undecided ones.
func entire(inventory ownership.Inventory, namespace string, cause Cause) []pending {
	var out []pending
	for component, e := range inventory.Entries() {
		if !e.Orphan {
			out = append(out, pending{e.Ref(namespace), component, Undecided, cause})
		}
	}
	return out
}

// rendered returns the identities of the objects that a version renders.
func (t *resourcePlan) rendered(by program.Rollout) map[cluster.Ref]bool {
	out := map[cluster.Ref]bool{}
	for _, c := range by.Components {
		for _, o := range c.Objects {
			if !o.Identity.Known() || c.When.Verdict == program.False {
				continue
			}
			scope, err := t.world.Scope(o.Identity.GroupVersionKind)
			if err != nil {
				scope = cluster.Namespaced // the cluster does not serve the kind, so that there is no such object
			}
			out[ownership.RefOf(o, t.ref.Namespace, scope).Identity()] = true
		}
	}
	return out
}

// keeps reports whether an object that a version renders, and has not applied, is certainly not recreated: its policy
// forbids that, or the old version renders the same.
func (t *resourcePlan) keeps(s side, component, object string) bool {
	next := s.object(component, object)
	if next == nil || next.Policy.Apply != program.RecreateOnImmutable || t.Old == nil {
		return true
	}
	before := t.old.object(component, object)
	return before != nil && before.Manifest != nil && reflect.DeepEqual(before.Manifest, next.Manifest)
}

// isApplied reports whether the status of a resource says of a component that it is as it should be.
func isApplied(u *unstructured.Unstructured, component string) bool {
	for _, c := range inState(statusOf(u), status.Verified, status.Applied) {
		if c.component == component {
			return true
		}
	}
	return false
}

// owns reports whether an object exists and says that it belongs to the resource: nobody but its owner deletes it.
func (t *resourcePlan) owns(ctx context.Context, ref cluster.Ref) bool {
	live := t.world.Get(ref)
	if live == nil {
		var err error
		if live, err = t.Cluster.Get(ctx, ref); err != nil {
			return !unreadable(err) // what the operator may not read it cannot delete
		}
	}
	if live == nil || t.subject.live == nil {
		return false
	}
	reach := t.New.Evaluator().Reach()
	owner := ownership.Owner{Ref: t.ref, UID: t.subject.live.GetUID(), Reach: &reach}.WithInventory(inventoryOf(t.subject.live))
	situation, _ := ownership.Classify(live, owner)
	return situation == ownership.Owned
}

// isOutage reports whether an error is one of the API server or of the way to it, and none about what was asked for.
func isOutage(err error) bool {
	var answer apierrors.APIStatus // which is no error type
	_, unsent := errors.AsType[*url.Error](err)
	return errors.As(err, &answer) && !unreadable(err) || unsent || errors.Is(err, context.DeadlineExceeded)
}

// outageSource is a source that notes when the API server does not answer. A name that is invalid in a request, which a
// user may have chosen, must not count as an outage, or there would never be a plan.
type outageSource struct {
	Snapshot

	of *resourcePlan
}

// note returns an error that it notes.
func (n outageSource) note(err error) error {
	if isOutage(err) {
		n.of.unread.Store(true)
		n.of.cancelRun()
	}
	return err
}

// Get implements dryrun.Source.
func (n outageSource) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := n.Snapshot.Get(ctx, ref)
	return u, n.note(err)
}

// List implements dryrun.Source.
func (n outageSource) List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := n.Snapshot.List(ctx, s)
	return all, n.note(err)
}

// Owned implements dryrun.Source.
func (n outageSource) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	all, err := n.Snapshot.Owned(ctx, namespace, label, value)
	return all, n.note(err)
}

// Scope implements dryrun.Source.
func (n outageSource) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	scope, err := n.Snapshot.Scope(ctx, kind)
	return scope, n.note(err)
}
