package reconcile

import (
	"context"
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
)

// Finalizer keeps a deleted custom resource until its objects are gone. Its name is part of the
// product's contract: with another name, resources with this one could not be deleted.
const Finalizer = cluster.TeardownFinalizer

// setFinalizers applies the engine's finalizer, or none, which removes it. It errors with a tooOftenError if others
// remove it again and again, and it has to wait.
func (s *state) setFinalizers(ctx context.Context, want ...string) error {
	has := slices.Contains(s.cr.GetFinalizers(), Finalizer)
	if has == slices.Contains(want, Finalizer) {
		return nil
	}
	if !has {
		if err := stateLimit.attempt(&s.memory.writes.finalizers, s.Now()); err != nil {
			return err
		}
	}
	u := s.identity()
	u.SetFinalizers(want)
	if err := s.Resources.ApplyFinalizers(ctx, u); err != nil {
		s.reportRefused(ownFinalizerWrite, err)
		return fmt.Errorf("%s: finalizer: %w", s.owner, err)
	}
	delete(s.memory.refusals, ownFinalizerWrite)
	s.cr = s.cr.DeepCopy() // the cache has this one
	s.cr.SetFinalizers(want)
	return nil
}
