package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Decision is what the next step of a resource would do, with the messages of the status.
type Decision struct {
	rollout.Decision
	// Redactor knows the Secrets that were read, for whatever else the caller prints.
	Redactor *redact.Redactor
}

// Decide returns what Step would do to a resource that exists and is not being deleted, and writes
// nothing. It reads the same input as Step. It ignores a pause, to show what comes after it. It
// errors when the cluster does not answer.
func (l *Reconciler) Decide(ctx context.Context, key types.NamespacedName, p Package) (Decision, error) {
	out := Decision{Redactor: redact.New()}
	s, err := l.fetch(ctx, key, p, out.Redactor)
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
	out.Decision, err = s.engine(s.limitEvaluations(in)).Decide(ctx, in)
	out.Fault.Message = out.Redactor.Text(out.Fault.Message)
	for i := range out.Components {
		c := &out.Components[i]
		c.Component, _ = s.applyTimeout(c.Component)
		c.Message = out.Redactor.Text(c.Message)
	}
	return out, out.Redactor.Error(err)
}
