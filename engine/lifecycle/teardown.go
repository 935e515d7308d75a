package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// Finalizer keeps a deleted custom resource until its objects are gone. Its name
// is part of the product's contract: another one would strand the resources that
// have this one.
const Finalizer = finalizerPrefix + "teardown"

// finalizerPrefix begins the names of the engine's finalizers.
const finalizerPrefix = "operetta.dev/"

// finalizerState is what the finalizer should be.
type finalizerState string

const (
	finalizerPresent finalizerState = "present"
	finalizerAbsent  finalizerState = "absent"
)

// teardown deletes the objects of a deleted resource, in order, from the
// inventory alone, and lets the resource go when none is left.
func (s *state) teardown(ctx context.Context) (time.Duration, error) {
	if !slices.Contains(s.cr.GetFinalizers(), Finalizer) {
		return 0, nil // garbage collection does it
	}
	if ready, again, err := s.beforeDelete(ctx); err != nil || !ready {
		return again, err
	}
	result, failure := rollout.Teardown(ctx, s.Cluster, s.owner, s.inventory)
	s.inventory = result.Inventory
	if failure == nil && s.inventory.Len() == 0 {
		s.recordObjects(result.Events)
		return 0, s.setFinalizer(ctx, finalizerAbsent)
	}
	again, err := s.report(ctx, result)
	if err != nil {
		return 0, err
	}
	return again, failure
}

// beforeDelete runs the hooks that come before the first object is deleted, and
// reports whether the objects may go now. Once one object is on its way, they have
// had their time.
func (s *state) beforeDelete(ctx context.Context) (bool, time.Duration, error) {
	if s.inventory.Len() == 0 || s.cr.GetAnnotations()[AnnotationSkipHooks] == "true" || s.finished[deletionBegun].State != "" {
		return true, 0, nil
	}
	in, err := s.input(ctx)
	if err != nil {
		return true, 0, nil // without its configuration the package has no say
	}
	result, done, failure := s.engine().BeforeDelete(ctx, in)
	if done {
		s.inventory, s.finished = result.Inventory, result.Finished
		s.recordObjects(result.Events)
		if s.finished == nil {
			s.finished = map[string]rollout.Finish{}
		}
		s.finished[deletionBegun] = rollout.Finish{State: status.Verified}
		return true, 0, nil
	}
	again, err := s.conclude(ctx, result, failure)
	return false, again, err
}

// deletionBegun stands among the finished hooks once the objects may go. It is no
// name of a hook.
const deletionBegun = "hooks.beforeDelete"

// setFinalizer applies the finalizer, or applies nothing, which takes it away.
func (s *state) setFinalizer(ctx context.Context, want finalizerState) error {
	has := slices.Contains(s.cr.GetFinalizers(), Finalizer)
	if has == (want == finalizerPresent) {
		return nil
	}
	u := s.identity()
	if want == finalizerPresent {
		u.SetFinalizers([]string{Finalizer})
	}
	if err := s.Store.ApplyFinalizers(ctx, u); err != nil {
		return fmt.Errorf("%s: finalizer: %w", s.owner, err)
	}
	s.cr.SetFinalizers(u.GetFinalizers())
	return nil
}
