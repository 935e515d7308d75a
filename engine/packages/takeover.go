package packages

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
)

// ownState returns the state of a Package for a process that decides. What was followed is taken over, because the process leads now. The
// process before may have decided more than was followed: than its status says, as it died before it could write that, or than this process
// has loaded. A resource that has got that must not go back, so what was followed is given up then, and the Package begins as after a restart.
func (r *Reconciler) ownState(ctx context.Context, p Package, account object.Account, unknown error) (*state, error) {
	s, err := r.stateOf(ctx, p, account, unknown)
	if err != nil || !s.follows {
		return s, err
	}
	latest, err := s.hasFollowedLatest(ctx, r, p)
	if err != nil {
		return nil, err
	}
	if !latest {
		r.Log.Info("this process has not followed the last decision about a Package, so it starts over", "package", p.Name)
		if err := r.forget(ctx, p.Name); err != nil {
			return nil, err
		}
		return r.stateOf(ctx, p, s.account, nil)
	}
	s.follows = false
	s.content, s.defined = content{}, "" // the source is read, and the definition written, by this process for the first time
	if s.canary = restoredCanary(p, r.Now()); s.canary != nil {
		s.tried.digest = s.canary.digest // the process before has kept it
	}
	if s.served != nil {
		if r.Holds != nil {
			r.Holds.Release(s.served.GroupVersionKind().GroupKind())
		}
		r.Log.Info("this process decides about a Package that it has followed", "package", p.Name, "digest", s.served.Digest())
	}
	return s, nil
}

// hasFollowedLatest reports, by live reads, whether what was followed is what was decided last, as it is where nothing is served.
func (s *state) hasFollowedLatest(ctx context.Context, r *Reconciler, p Package) (bool, error) {
	if s.served == nil {
		return true, nil
	}
	live, err := r.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: Kind, Name: p.Name})
	if err != nil {
		return false, fmt.Errorf("package %s: %w", p.Name, err)
	}
	s.revisionsRead = false
	last, err := r.keeper().lastGood(ctx, p, s)
	if err != nil {
		return false, err
	}
	return live != nil && s.isLatest(last, restoredCanary(Package{object: live}, r.Now())), nil
}

// isLatest reports whether what is served is the revision that was accepted last, with the canary that is in progress beside it.
func (s *state) isLatest(last *revision, now *canary) bool {
	beside, want := "", ""
	if s.servedCanary != nil {
		beside = s.servedCanary.candidate.Program.Digest()
	}
	if now.inProgress() && now.from == s.served.Digest() {
		want = now.digest
	}
	return last != nil && last.digest == s.served.Digest() && beside == want
}

// held has a kind served, with a hold if another process decides.
func held(by Holds, s *state, kind schema.GroupKind, serve func() error) error {
	switch {
	case by == nil:
		return serve()
	case s.follows:
		by.Hold(kind)
	default:
		by.Release(kind)
	}
	err := serve()
	if err != nil {
		by.Release(kind) // the process that serves it next may not know of the hold
	}
	return err
}
