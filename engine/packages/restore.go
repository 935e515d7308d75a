package packages

import (
	"context"
	"errors"
	"fmt"
)

// restore serves what was accepted last after a restart.
func (r *Reconciler) restore(ctx context.Context, p Package, s *state, faultText string, out *result) {
	last, err := r.keeper().lastGood(ctx, p, s)
	if err != nil {
		out.problem.err, out.undecided = errors.Join(out.problem.err, err), err
		return
	}
	if last == nil || out.isAbout(s, last) {
		switch {
		case last == nil: // nobody serves anything
		case out.problem.err != nil:
			out.undecided = out.problem.err // such as an API server that refuses requests for now
		case out.problem.reason == ReasonCheckFailed:
			out.undecided = errors.New(out.problem.message)
		}
		return
	}
	if err := r.trust().accepts(p, last.provenance); err != nil {
		out.problem.addMessage(fmt.Sprintf("%s, which was accepted last, is not used: %v", last.digest, err))
		out.problem.passes = out.problem.reason == ReasonFetching // nothing is served, and the resources say so
		return
	}
	exam, err := r.examine(ctx, p, s, last.snapshot)
	if err != nil {
		out.problem.err, out.undecided = errors.Join(out.problem.err, err), err
		return
	}
	if out.pending = !exam.ended(); out.pending {
		return
	}
	if exam.err != nil {
		out.notUsable(last, exam)
		return
	}
	beside, err := r.resume(ctx, p, s, exam.candidate, out)
	if err != nil || out.pending {
		out.problem.err, out.undecided = errors.Join(out.problem.err, err), err
		return
	}
	next := exam.candidate.Program
	if wrong := r.claim(ctx, p, s, next.GroupVersionKind().GroupKind()); wrong != nil {
		out.problem.addMessage(wrong.message)
		out.problem.again = wrong.again
		return
	}
	if err = r.setFinalizer(ctx, p); err == nil {
		err = r.serveRestored(ctx, p, s, exam.candidate, beside, faultText)
	}
	if err != nil {
		out.problem.err, out.undecided = errors.Join(out.problem.err, err), err
		return
	}
	r.Server.ReportRepaired(p.origin(), next.GroupVersionKind().GroupKind().String())
	r.Log.Info("the version that was accepted last is served", "package", p.Name, "digest", next.Digest(), "why", string(out.problem.reason))
	if beside != nil && out.problem.stage == holding && out.problem.passes {
		out.problem = s.canary.problem() // it goes on, and waits for nothing else
	}
}

// isAbout reports whether a problem is one with the content that was accepted last. One with a spec or a source that cannot be read is not,
// although what was read before may be just that content: a process that has begun may have come no further than to check it.
func (o *result) isAbout(s *state, last *revision) bool {
	return !o.unread && o.problem.stage != holding && last.digest == s.content.digest()
}

// notUsable says that the check of what was accepted last has not passed. One that was ended is repeated, also where nothing else is to be
// tried again: the machine may have been busy.
func (o *result) notUsable(last *revision, exam *examination) {
	o.problem.addMessage(fmt.Sprintf("%s, which was accepted last, cannot be used either: %v", last.digest, exam.err))
	if exam.foundFaults() {
		return
	}
	o.undecided = exam.err
	if at := exam.again(); o.problem.again == 0 || at < o.problem.again {
		o.problem.again = at
	}
}

// serveRestored serves the version that was accepted last, and beside it that of a canary which was in progress.
func (r *Reconciler) serveRestored(ctx context.Context, p Package, s *state, base Candidate, beside *servedCanary, faultText string) error {
	wanted, defined := base.CRD, base.Program.Digest()
	var canary *Canary
	if beside != nil {
		wanted, defined = beside.both, defined+" and "+beside.candidate.Program.Digest()
		canary = s.canary.version(beside.candidate.Program)
	}
	r.Accounts.ActAs(base.Program.GroupVersionKind().GroupKind(), p.account)
	if err := r.install(ctx, p, s, wanted); err != nil {
		return err
	}
	if err := r.allowPins(ctx, p, s, base.Program.GroupVersionKind().GroupKind()); err != nil {
		return err
	}
	serve := func() error { return r.Server.ServeOutdated(base.Program, faultText, canary) }
	if err := held(r.Holds, s, base.Program.GroupVersionKind().GroupKind(), serve); err != nil {
		return err
	}
	s.served, s.crd, s.defined, s.outdated, s.broken, s.servedCanary = base.Program, base.CRD, defined, faultText, "", beside
	return nil
}
