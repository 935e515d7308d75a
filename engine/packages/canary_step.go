package packages

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Canary is a version of a package that some resources are reconciled with, and the others not yet.
type Canary struct {
	Program *program.Program
	// Selects reports whether a resource is. It is a function of the resource alone.
	Selects func(Resource) bool
}

// A servedCanary is a canary in progress, as the Server has it.
type servedCanary struct {
	candidate Candidate
	// both is the definition with which both versions can work.
	both *definition
	// selection identifies what the Server was told to select.
	selection string
	// read is the content as it was read last, and source where that was; nothing after a restart, until it is read again.
	read   content
	source Source
}

// admit takes over a content that has passed its checks: with a canary, for some of the resources first.
func (r *Reconciler) admit(ctx context.Context, p Package, s *state, next Candidate, out *result) {
	tried := s.canary.is(s.content.digest()) && s.canary.phase != CanaryPromoted
	if tried {
		if out.problem = r.tryCanary(ctx, p, s, next); out.problem != nil {
			return
		}
	}
	if out.problem, out.planned = r.withinLimits(ctx, p, s, next); out.problem != nil {
		return
	}
	if !tried {
		if out.problem = r.tryCanary(ctx, p, s, next); out.problem != nil {
			return
		}
	}
	out.problem = r.accept(ctx, p, s, next)
}

// tryCanary returns why a content is not taken over for all resources because of its canary, or nil. The first content of a
// Package has none, and neither has what was accepted last.
func (r *Reconciler) tryCanary(ctx context.Context, p Package, s *state, next Candidate) *problem {
	if p.Canary == nil {
		return nil
	}
	digest := next.Program.Digest()
	if s.canary.is(digest) && s.canary.phase == CanaryRolledBack {
		return s.canary.problem()
	}
	last, err := r.keeper().lastGood(ctx, p, s)
	switch {
	case err != nil:
		return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
	case s.served == nil && (last == nil || last.digest == digest):
		return nil // there is nothing to go back to
	case s.served == nil && r.unusable(p, s, last):
		return &problem{stage: holding, reason: ReasonCanaryIncompatible, person: true,
			message: digest + " cannot be tried by a canary, because the version to go back to cannot be used; remove spec.canary to take it over for all resources"}
	case s.served == nil:
		return &problem{stage: holding, reason: ReasonCanaryProgressing, message: "the version that was accepted last is not served yet", again: servedAgain, passes: true}
	case s.served.GroupVersionKind().GroupKind() != next.Program.GroupVersionKind().GroupKind():
		return nil // it is taken over only once no resource is left
	}
	t := s.servedCanary
	if t == nil || t.candidate.Program.Digest() != digest {
		both, err := bothDefinitions(s.crd, next.CRD)
		if err == nil {
			var known bool
			if known, err = s.besidePins(both); !known {
				return &problem{stage: holding, reason: ReasonCanaryProgressing, message: "the revisions that resources are pinned to are not loaded yet", again: servedAgain, passes: true}
			}
		}
		if err != nil {
			return &problem{stage: holding, reason: ReasonCanaryIncompatible, person: true,
				message: fmt.Sprintf("%s cannot be tried by a canary, because both versions would have one definition: %v; remove spec.canary to take it over for all resources", digest, err)}
		}
		t = &servedCanary{candidate: next, both: both}
	}
	t.read, t.source = s.content, p.Source
	return r.watchCanary(ctx, p, s, t)
}

// watchCanary takes the canary of a content one step further. It returns nil once all resources may have the content.
func (r *Reconciler) watchCanary(ctx context.Context, p Package, s *state, t *servedCanary) *problem {
	digest := t.candidate.Program.Digest()
	all, err := r.Server.Resources(ctx, s.served.GroupVersionKind())
	if err != nil {
		return &problem{stage: holding, reason: ReasonCanaryProgressing, message: err.Error(), err: err}
	}
	if p.RevisionPins != allowPins {
		for i := range all {
			all[i].Pin = "" // it has no effect
		}
	}
	was := s.canary
	if !was.is(digest) || !was.inProgress() {
		was = &canary{digest: digest, from: s.served.Digest(), phase: CanaryProgressing, began: r.Now()}
	}
	now, action := was.follow(p.Canary, all, r.Now())
	switch action {
	case rollBackCanary:
		return r.rollBack(ctx, p, s, now)
	case promoteCanary:
		s.canary = &now
		return nil
	case continueCanary:
	}
	s.canary, s.servedCanary = &now, t
	if err := r.serveCanary(ctx, p, s, all); err != nil {
		return &problem{stage: holding, reason: ReasonCanaryProgressing, message: err.Error(), err: err}
	}
	return now.problem()
}

// serveCanary has the Server reconcile the resources of a canary with its content. The definition comes first: the content
// may report fields that the version before does not know.
func (r *Reconciler) serveCanary(ctx context.Context, p Package, s *state, all []Resource) error {
	if err := errors.Join(r.define(ctx, p, s), r.keeper().keepTried(ctx, p, s)); err != nil {
		return err
	}
	if selection := s.canary.selection(); s.servedCanary.selection != selection {
		if err := r.Versions.Canary(ctx, s.served, s.canary.version(s.servedCanary.candidate.Program)); err != nil {
			return err
		}
		s.servedCanary.selection = selection
		return nil
	}
	// A resource that has become ready meanwhile may have had no event since.
	var late []Resource
	for _, u := range all {
		if u.Digest != s.canary.digest && !u.Deleted && s.canary.selects(u) {
			late = append(late, u)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return r.Versions.Requeue(s.served, late)
}

// version returns what the Server is told of a canary.
func (c canary) version(of *program.Program) *Canary { return &Canary{of, c.selects} }

// selection identifies which resources a canary selects.
func (c canary) selection() string {
	switch {
	case c.restored:
		return "restored"
	case c.selector != nil:
		return "selector " + c.selector.String()
	case c.cutoff != nil:
		return fmt.Sprintf("up to %x", *c.cutoff)
	}
	return "none"
}

// rollBack has all resources reconciled with the version before, and remembers that.
func (r *Reconciler) rollBack(ctx context.Context, p Package, s *state, c canary) *problem {
	if err := r.withdrawCanary(ctx, s); err != nil {
		return &problem{stage: holding, reason: ReasonCanaryProgressing, message: err.Error(), err: err}
	}
	r.endCanary(p, s, c, CanaryRolledBack)
	r.Log.Info("a canary was rolled back", "package", p.Name, "digest", c.digest, "why", c.why)
	return s.canary.problem()
}

// withdrawCanary has the Server reconcile all resources with the version that is served.
func (r *Reconciler) withdrawCanary(ctx context.Context, s *state) error {
	if s.servedCanary == nil {
		return nil
	}
	if err := r.Versions.Canary(ctx, s.served, nil); err != nil {
		return err
	}
	s.servedCanary = nil
	return nil
}

// dropCanary ends and forgets the canary of a content that is no longer to be taken over: that of the source is another one.
func (r *Reconciler) dropCanary(ctx context.Context, p Package, s *state) *problem {
	if s.canary == nil || s.canary.is(s.content.digest()) && !s.canary.inProgress() {
		return nil
	}
	if s.canary.phase == CanaryRolledBack && s.content.digest() == "" {
		return nil // the same content may come back
	}
	if err := r.withdrawCanary(ctx, s); err != nil {
		return &problem{stage: holding, reason: ReasonCanaryProgressing, message: err.Error(), err: err}
	}
	if s.canary.inProgress() {
		r.Log.Info("a canary ends, because its content is not to be taken over any more", "package", p.Name, "digest", s.canary.digest)
	}
	s.canary = nil
	return nil
}

// canaryWithoutContent is about a canary while there is no content to take over. If what the source has now is known to be no package, or is
// not approved any more, the canary ends. If the source cannot be read, it goes on: whether its content is good does not depend on that.
func (r *Reconciler) canaryWithoutContent(ctx context.Context, p Package, s *state, out *result) {
	var wrong *problem
	t := s.servedCanary
	switch {
	case s.served == nil, out.problem.stage != reading && out.problem.err != nil:
		return
	case out.problem.stage != reading:
		wrong = r.dropCanary(ctx, p, s)
	case t == nil || !s.canary.inProgress() || !s.canary.is(t.candidate.Program.Digest()) || p.Canary == nil || p.Paused || p.deleted():
		return
	case !t.isIn(p.Source, s.content):
		wrong = r.watchCanary(ctx, p, s, t) // it may go back
	default:
		unread, judged := s.content, &result{}
		if s.content = t.read; r.approval(ctx, p, s) == nil {
			r.admit(ctx, p, s, t.candidate, judged)
		} else {
			judged.problem = r.watchCanary(ctx, p, s, t)
		}
		s.content, out.planned, wrong = unread, judged.planned, judged.problem
	}
	if s.canary.inProgress() && out.problem.stage == reading {
		out.problem.again = canaryAgain
	}
	if wrong == nil {
		return
	}
	out.problem.err = errors.Join(out.problem.err, wrong.err)
	if wrong.reason == ReasonCanaryRolledBack { // the conditions say why the source cannot be read
		r.Recorder.Record(p.object, rollout.Event{Reason: string(wrong.reason), Message: status.Shorten(wrong.message, maxEvent), Warning: true})
	}
}

// isIn reports whether the content is what a source has that cannot be read now, for all that is known of it.
func (t *servedCanary) isIn(in Source, unread content) bool {
	return t.read.snapshot != nil && reflect.DeepEqual(t.source, in) && (unread.version == "" || unread.version == t.read.version)
}

// promoted notes that all resources have the content of a canary.
func (r *Reconciler) promoted(p Package, s *state) {
	s.servedCanary = nil
	if !s.canary.inProgress() || !s.canary.is(s.served.Digest()) {
		s.canary = nil // a person has taken spec.canary away
		return
	}
	c := *s.canary
	r.endCanary(p, s, c, CanaryPromoted)
	r.Recorder.Record(p.object, rollout.Event{Reason: string(ReasonCanaryPromoted), Message: fmt.Sprintf("%s is served to all resources, after %d of them", c.digest, c.total)})
}

// endCanary notes how a canary has ended.
func (r *Reconciler) endCanary(p Package, s *state, c canary, how CanaryPhase) {
	c = c.turn(how, r.Now())
	s.canary = &c
	if r.Observer != nil {
		r.Observer.CanaryEnded(p.Name, string(how))
	}
}

// observe tells an observer, which may be nil, how far the canary of a Package is.
func observe(by Observer, p Package, s *state) {
	switch {
	case by == nil:
	case s.servedCanary != nil && s.canary.inProgress():
		by.Canary(p.Name, s.canary.total, s.canary.ready)
	default:
		by.NoCanary(p.Name)
	}
}

// resume returns the canary with which the version that was accepted last is to be served after a restart, or nil. Until the
// content of the canary is there, nothing is served: its resources would go back, and change twice.
func (r *Reconciler) resume(ctx context.Context, p Package, s *state, base Candidate, out *result) (*servedCanary, error) {
	c := s.canary
	if p.Canary == nil || !c.inProgress() || c.from != base.Program.Digest() {
		return nil, nil
	}
	if out.problem.reason == ReasonFetching {
		out.pending = true // the end of the fetch is an event
		r.first.noteContent(p.Name)
		return nil, nil
	}
	if !c.is(s.content.digest()) {
		return nil, nil
	}
	exam, err := r.examine(ctx, p, s, s.content.snapshot)
	if err != nil {
		return nil, err
	}
	if out.pending = !exam.ended(); out.pending || exam.err != nil {
		return nil, nil //nolint:nilerr // the next step says it
	}
	both, incompatible := bothDefinitions(base.CRD, exam.candidate.CRD)
	if incompatible != nil {
		return nil, nil //nolint:nilerr // the next step says it
	}
	if p.Canary.Selector != nil {
		if c.selector, err = metav1.LabelSelectorAsSelector(p.Canary.Selector); err != nil {
			return nil, errors.Join(errors.New("package "+p.Name), err)
		}
	}
	return &servedCanary{candidate: exam.candidate, both: both, selection: c.selection()}, nil
}
