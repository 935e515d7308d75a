package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// ReconcilePackageMissing is Reconcile for a resource whose package does not run here. It tears down a resource
// that is being deleted, from its inventory; everything else needs the package.
func (r *Reconciler) ReconcilePackageMissing(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	redactor := redact.New()
	return r.recovered(ctx, key, nil, redactor, func() (time.Duration, error) { return r.reconcilePackageMissing(ctx, key, redactor) })
}

func (r *Reconciler) reconcilePackageMissing(ctx context.Context, key types.NamespacedName, redactor *redact.Redactor) (time.Duration, error) {
	s, err := r.fetch(ctx, key, nil, redactor)
	wrong, unread := errors.AsType[*corruptStatusError](err)
	if err != nil && !unread {
		return 0, err
	}
	if s == nil || !s.awaitsTeardown() {
		return 0, nil
	}
	if left := packageMissingGracePeriod - s.Now().Sub(s.cr.GetDeletionTimestamp().Time); left > 0 {
		return left, nil
	}
	if unread {
		return s.reportCorruptStatus(ctx, wrong)
	}
	if s.before["observedGeneration"] == nil {
		s.hookStates = s.hookStates.WithHooksUnknown()
	}
	if why := s.hookStates.BeforeDeletion(s.inventory); why != "" && !s.skipsHooks() {
		return 0, s.holdDeletion(ctx, why)
	}
	s.hookStates = s.hookStates.WithDeletionBegun()
	return s.deleteObjects(ctx)
}

// awaitsTeardown reports whether the resource is being deleted and has the engine's finalizer.
func (s *subject) awaitsTeardown() bool {
	return s.cr.GetDeletionTimestamp() != nil && slices.Contains(s.cr.GetFinalizers(), Finalizer)
}

// holdDeletion reports why the deletion cannot begin without the package.
func (s *state) holdDeletion(ctx context.Context, why string) error {
	pkg := "the package of its kind"
	if name, _ := s.identify(); name != "" {
		pkg = "package " + name
	}
	message := fmt.Sprintf("%s, and this operator does not run %s: run one that does; %s", why, pkg, s.withoutHooks())
	after := s.build(status.Completion{
		Deleting: true, Change: status.Unchanged,
		Fault: status.Component{State: status.Failed, Reason: status.ReasonPackageMissing, Message: message},
	})
	return s.reportDeletionBlocked(ctx, after, message)
}

// reportDeletionBlocked writes the status of a deletion that cannot continue, with an Event when
// the status changes.
func (s *state) reportDeletionBlocked(ctx context.Context, after map[string]any, message string) error {
	if status.Equal(s.before, after) {
		return nil
	}
	if err := s.write(ctx, after); err != nil {
		return err
	}
	s.log.Info("DeletionHeld", "message", message)
	s.recordEvent(rollout.Event{Reason: "DeletionHeld", Warning: true, Message: "The deletion was held: " + message})
	return nil
}
