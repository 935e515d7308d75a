package reconcile

import (
	"time"

	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// applyTimeouts fails the components that have waited longer than their timeout. It returns when the
// next timeout ends, or 0.
func (s *state) applyTimeouts(c *status.Completion) time.Duration {
	var next time.Duration
	for i, comp := range c.Components {
		late, left := s.applyTimeout(comp)
		c.Components[i] = late
		next = rollout.ShortestWait(next, left)
	}
	return next
}

// applyTimeout returns a component as failed if its timeout has ended. Otherwise it returns the
// component as it is, and the time that it has left, or 0 if it has no timeout.
func (s *state) applyTimeout(c status.Component) (status.Component, time.Duration) {
	if c.Timeout == 0 || c.Done() || c.State == status.Failed {
		return c, 0
	}
	now := s.Now()
	if left := c.Timeout - now.Sub(status.Since(s.before, c, s.cr.GetGeneration(), now)); left > 0 {
		return c, left
	}
	return c.TimedOut(), 0
}
