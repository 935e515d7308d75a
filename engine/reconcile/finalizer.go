package reconcile

import (
	"context"
	"fmt"
	"slices"
)

// setFinalizers applies the engine's finalizer, or none, which removes it.
func (s *state) setFinalizers(ctx context.Context, want ...string) error {
	has := slices.Contains(s.cr.GetFinalizers(), Finalizer)
	if has == slices.Contains(want, Finalizer) {
		return nil
	}
	u := s.identity()
	u.SetFinalizers(want)
	if err := s.Resources.ApplyFinalizers(ctx, u); err != nil {
		return fmt.Errorf("%s: finalizer: %w", s.owner, err)
	}
	s.cr.SetFinalizers(want)
	return nil
}
