package reconcile

import (
	"slices"

	"operetta.dev/engine/patch"
	"operetta.dev/engine/status"
)

// What a step says to people leaves here, without what the Secrets in sight hold: the
// status of the resource, that of its patches, events, and the error that the queue
// logs. The log of a step is behind the same redactor from the start.

// allowNames makes the names of a resource known that everybody may read, so that a Secret
// with such a value does not make its messages unreadable.
func (s *state) allowNames() {
	s.redactor.AllowNames(s.owner.Kind, s.owner.Name, s.owner.Namespace)
	for _, g := range s.inventory {
		s.redactor.AllowNames(g.Component)
		for _, e := range g.Objects {
			s.redactor.AllowNames(e.Object, e.Kind, e.Name, e.Namespace)
		}
	}
}

// redacted returns what came of a rollout without what Secrets hold. The texts are
// whole here: a part of a value would not be found any more.
func (s *state) redacted(c status.Completion) status.Completion {
	c.Fault.Message = s.redactor.Text(c.Fault.Message)
	c.Components = slices.Clone(c.Components)
	for i := range c.Components {
		c.Components[i].Message = s.redactor.Text(c.Components[i].Message)
	}
	if c.Own != nil {
		c.Own, _ = s.redactor.Data(c.Own).(map[string]any)
	}
	return c
}

// redactedReport returns what came of a patch without what Secrets hold.
func (s *state) redactedReport(r patch.Report) patch.Report {
	r.Unmatched = slices.Clone(r.Unmatched)
	for i := range r.Unmatched {
		r.Unmatched[i].Message = s.redactor.Text(r.Unmatched[i].Message)
	}
	return r
}
