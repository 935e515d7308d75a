package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// recovered takes a step. A panic in it becomes what the status of the resource says and an
// error, so that it is tried again: the process serves others as well, and a status that
// stayed as it was might say Ready of what nobody looks after.
func (l *Reconciler) recovered(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor, step func() (time.Duration, error)) (again time.Duration, err error) {
	fault := caught(func() { again, err = step() })
	if fault == nil {
		return again, err
	}
	logPanic(redactor.Log(logr.FromContextOrDiscard(ctx)), fault)
	err = fmt.Errorf("%s %s: %w", l.Kind.Kind, key, fault)
	var failure error
	if second := caught(func() { failure = l.reportInternalError(ctx, key, p, redactor, fault) }); second != nil {
		logPanic(redactor.Log(logr.FromContextOrDiscard(ctx)), second)
	}
	return 0, errors.Join(err, failure)
}

// caught does something, and returns a panic in it.
func caught(do func()) (fault *rollout.PanicError) {
	defer func() {
		if cause := recover(); cause != nil {
			fault = &rollout.PanicError{Cause: cause, Stack: debug.Stack()}
		}
	}()
	do()
	return nil
}

// logPanic writes a panic to a log, which redacts it: a cause may quote what was worked on.
func logPanic(log logr.Logger, fault *rollout.PanicError) {
	log.Error(nil, "the operator has a fault", "panic", fmt.Sprint(fault.Cause), "stack", string(fault.Stack))
}

// reportInternalError says in the status of a resource that the operator has a fault. It reads
// nothing of the resource that it can do without: what is in there may have been the cause.
func (l *Reconciler) reportInternalError(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor, fault error) error {
	cr, err := l.Resources.GetCached(ctx, l.ref(key))
	if err != nil || cr == nil {
		return err
	}
	s := &state{
		Reconciler: l,
		log:        redactor.Log(logr.FromContextOrDiscard(ctx)),
		redactor:   redactor,
		program:    p,
		cr:         cr,
		owner:      ownership.Owner{Ref: cluster.Ref{GroupVersionKind: l.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName()}, UID: cr.GetUID()},
	}
	s.before = ownStatus(cr)
	return s.writeChanged(ctx, s.statusWithFault(status.ReasonInternalError, fault.Error()))
}
