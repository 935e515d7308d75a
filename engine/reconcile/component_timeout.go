package reconcile

import (
	"time"

	"operetta.dev/engine/status"
)

// applyTimeouts turns components that have waited longer than their timeout into failed
// ones, and returns when the next one will be.
func (s *state) applyTimeouts(c *status.Completion) time.Duration {
	var next time.Duration
	for i, comp := range c.Components {
		late, left := s.applyTimeout(comp)
		c.Components[i] = late
		next = earliest(next, left)
	}
	return next
}

// applyTimeout returns a component that has had its time as a failed one, and any other
// as it is, with the time that it has left, or 0 when there is no limit.
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
