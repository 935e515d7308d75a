package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"operetta.dev/engine/rollout"
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
