package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// recovered runs a reconcile, and turns a panic into a status of the resource and an error. The process
// has to go on for other resources, and an unchanged status might say Ready although nothing
// reconciles the resource.
func (r *Reconciler) recovered(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor, reconcile func() (time.Duration, error)) (again time.Duration, err error) {
	fault := rollout.CatchPanic(func() { again, err = reconcile() })
	if fault == nil {
		return again, err
	}
	logPanic(redactor.Log(logr.FromContextOrDiscard(ctx)), fault)
	err = fmt.Errorf("%s %s: %w", r.Kind.Kind, key, fault)
	var failure error
	if second := rollout.CatchPanic(func() { failure = r.reportInternalError(ctx, key, p, redactor, fault) }); second != nil {
		logPanic(redactor.Log(logr.FromContextOrDiscard(ctx)), second)
	}
	return 0, errors.Join(err, failure)
}

// logPanic writes a panic to a log that redacts it: the cause may quote a Secret.
func logPanic(log logr.Logger, fault *rollout.PanicError) {
	log.Error(nil, "the operator panicked", "panic", fmt.Sprint(fault.Cause), "stack", string(fault.Stack))
}

// reportInternalError reports in the status that the operator has a fault. It reads as little of the
// resource as possible, because its content may have caused the panic.
func (r *Reconciler) reportInternalError(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor, fault error) error {
	cr, err := r.get(ctx, key)
	if err != nil || cr == nil {
		return err
	}
	s := r.newState(ctx, cr, p, redactor)
	return s.writeChanged(ctx, s.statusWithFault(status.ReasonInternalError, fault.Error()))
}
