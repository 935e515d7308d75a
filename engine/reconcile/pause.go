package reconcile

import (
	"context"
	"time"

	"operetta.dev/engine/status"
)

// paused reports whether a person has paused the resource.
func (s *subject) paused() bool { return s.cr.GetAnnotations()[AnnotationPaused] == "true" }

// pause reports in the status that the resource is paused, and does nothing else.
func (s *state) pause(ctx context.Context) (time.Duration, error) {
	if err := s.writeChanged(ctx, status.Paused(s.before, s.cr.GetGeneration(), s.Now())); err != nil {
		return 0, err
	}
	return 0, s.patchesPaused(ctx)
}
