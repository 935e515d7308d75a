package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// StepPackageMissing takes a resource one step further whose package is not here, and returns
// what Step returns. One that is being deleted is torn down from its inventory; all
// else needs the package.
func (l *Reconciler) StepPackageMissing(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	redactor := redact.New()
	return l.recovered(ctx, key, nil, redactor, func() (time.Duration, error) { return l.stepPackageMissing(ctx, key, redactor) })
}

func (l *Reconciler) stepPackageMissing(ctx context.Context, key types.NamespacedName, redactor *redact.Redactor) (time.Duration, error) {
	s, err := l.fetch(ctx, key, nil, redactor)
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
		s.finished[deletionBegun] = rollout.HookState{State: status.Waiting} // with its status it lost its hooks
	}
	if why := s.hooksDue(); why != "" {
		return 0, s.holdDeletion(ctx, why)
	}
	s.finished[deletionBegun] = rollout.HookState{State: status.Verified}
	return s.deleteObjects(ctx)
}

// awaitsTeardown reports whether the resource is being deleted and has the engine's finalizer.
func (s *state) awaitsTeardown() bool {
	return s.cr.GetDeletionTimestamp() != nil && slices.Contains(s.cr.GetFinalizers(), Finalizer)
}

// hooksDue says which hooks have to run before the first object may go, or "".
func (s *state) hooksDue() string {
	begun := s.finished[deletionBegun].State
	switch {
	case begun == status.Verified || s.skipsHooks():
		return ""
	case begun == status.Waiting && s.inventory.Len() > 0:
		return "its status was lost, and with it whether hooks come before its deletion"
	}
	var due []string
	for _, name := range slices.Sorted(maps.Keys(s.finished)) {
		if strings.HasPrefix(name, beforeDeletion) && s.finished[name].State != status.Verified {
			due = append(due, name)
		}
	}
	if len(due) == 0 {
		return ""
	}
	return strings.Join(due, ", ") + " must run first"
}

// beforeDeletion begins the names of the hooks that run before deletion.
const beforeDeletion = "hooks." + string(program.BeforeDelete) + "."

// holdDeletion reports why a deletion cannot begin without the package.
func (s *state) holdDeletion(ctx context.Context, why string) error {
	name, _ := s.identify()
	if name == "" {
		name = "of its kind"
	}
	message := fmt.Sprintf("%s, and package %s is not run here; run it; %s", why, name, s.withoutHooks())
	after := s.build(status.Completion{
		Deleting: true, Change: status.Unchanged,
		Fault: status.Component{State: status.Failed, Reason: status.ReasonPackageMissing, Message: message},
	})
	return s.reportDeletionBlocked(ctx, after, message)
}

// reportDeletionBlocked writes the status of a deletion that cannot continue, with an event
// when that changes.
func (s *state) reportDeletionBlocked(ctx context.Context, after map[string]any, message string) error {
	if status.Same(s.before, after) {
		return nil
	}
	if err := s.write(ctx, after); err != nil {
		return err
	}
	s.log.Info("DeletionHeld", "message", message)
	s.recordEvent(rollout.Event{Reason: "DeletionHeld", Warning: true, Message: "The deletion was held: " + message})
	return nil
}
