package reconcile

import (
	"slices"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// Everything that a reconcile tells people passes through the redactor, which removes the content of the
// Secrets that the reconcile has read: the status of the resource and of its patches, events, the
// error that the queue logs, and the log.

// allowNames allows the public names of a resource in messages. Otherwise a Secret whose value
// is such a name would make the messages unreadable.
func allowNames(by *redact.Redactor, owner ownership.Owner, inventory ownership.Inventory) {
	by.AllowNames(owner.Kind, owner.Name, owner.Namespace)
	for _, g := range inventory {
		by.AllowNames(g.Component)
		for _, e := range g.Objects {
			by.AllowNames(e.Object, e.Kind, e.Name, e.Namespace)
		}
	}
}

// redacted returns a completion without the content of Secrets. It has to run before texts are
// shortened: the redactor would not find a part of a value.
func redacted(by *redact.Redactor, c status.Completion) status.Completion {
	c.Fault.Message = by.Text(c.Fault.Message)
	c.Pruning = by.Text(c.Pruning)
	c.Components = slices.Clone(c.Components)
	for i := range c.Components {
		c.Components[i].Message = by.Text(c.Components[i].Message)
	}
	if c.Own != nil {
		c.Own, _ = by.Data(c.Own).(map[string]any)
	}
	return c
}

// redactedReport returns the result of a patch without the content of Secrets.
func redactedReport(by *redact.Redactor, r patch.Report) patch.Report {
	r.Unmatched = slices.Clone(r.Unmatched)
	for i := range r.Unmatched {
		r.Unmatched[i].Message = by.Text(r.Unmatched[i].Message)
	}
	return r
}
