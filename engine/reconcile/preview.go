package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Preview is what the next reconcile of a resource would do, with the messages of the status.
type Preview struct {
	rollout.Preview
	// Redactor knows the Secrets that were read, for whatever else the caller prints.
	Redactor *redact.Redactor
}

// Preview returns what Reconcile would do to a resource that exists and is not being deleted, and writes
// nothing. It reads the same input as Reconcile. It ignores a pause, to show what comes after it. It
// errors when the cluster does not answer.
func (r *Reconciler) Preview(ctx context.Context, key types.NamespacedName, p Package) (Preview, error) {
	out := Preview{Redactor: redact.New()}
	s, err := r.fetch(ctx, key, p, out.Redactor)
	if wrong, unread := errors.AsType[*corruptStatusError](err); unread {
		out.Fault = status.Component{State: status.Failed, Reason: status.ReasonStatusUnreadable, Message: wrong.Error()}
		return out, nil
	}
	if err != nil || s == nil {
		return out, out.Redactor.Error(err)
	}
	in, err := s.input(ctx)
	if bad, ok := errors.AsType[*ConfigError](err); ok {
		out.Fault = status.Component{State: status.Failed, Reason: status.ReasonInvalidConfig, Message: bad.Error()}
		return out, nil
	}
	if err != nil {
		return out, out.Redactor.Error(err)
	}
	out.Preview, err = s.engine(s.limitEvaluations(in)).Preview(ctx, in)
	out.Fault.Message = out.Redactor.Text(out.Fault.Message)
	for i := range out.Components {
		c := &out.Components[i]
		c.Component, _ = s.applyTimeout(c.Component)
		c.Message = out.Redactor.Text(c.Message)
	}
	return out, out.Redactor.Error(err)
}
