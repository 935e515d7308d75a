package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// teardown deletes the objects of a deleted resource in order, from the inventory alone, and
// removes the finalizer when none is left.
func (s *state) teardown(ctx context.Context) (time.Duration, error) {
	if !slices.Contains(s.cr.GetFinalizers(), Finalizer) {
		return 0, nil // garbage collection deletes the objects
	}
	if ready, again, err := s.beforeDelete(ctx); err != nil || !ready {
		return again, err
	}
	return s.deleteObjects(ctx)
}

// deleteObjects deletes the objects of the inventory, and needs nothing else.
func (s *state) deleteObjects(ctx context.Context) (time.Duration, error) {
	if slices.Contains(s.cr.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		s.inventory = s.inventory.OrphanAll() // kubectl delete --cascade=orphan
	}
	result, failure := rollout.Teardown(ctx, s.Cluster, s.owner, s.inventory)
	s.inventory = result.Inventory
	if failure == nil && s.inventory.Len() == 0 {
		s.recordObjectEvents(result.Events)
		return 0, s.setFinalizers(ctx)
	}
	again, err := s.report(ctx, result)
	return rollout.ShortestWait(again, result.RequeueAfter), errors.Join(failure, err)
}

// beforeDelete runs the hooks before the first object is deleted, and reports whether the objects may
// be deleted now. Once the deletion has begun, hooks do not run any more. A package without such
// hooks is not evaluated, so that nothing that it reads can block the deletion.
func (s *state) beforeDelete(ctx context.Context) (bool, time.Duration, error) {
	switch {
	case s.hookStates.DeletionBegun(), s.skipsHooks():
		return true, 0, nil
	case !s.program.MayRun(program.BeforeDelete):
		return true, 0, nil
	}
	in, err := s.input(ctx)
	bad, ok := errors.AsType[*ConfigError](err)
	switch {
	case ok && bad.Tenant:
		err = nil // otherwise an invalid annotation would be a way to skip the hooks
	case ok:
		// Without its configuration the package cannot be evaluated.
		return true, 0, s.recordDeletionBegun(ctx, rollout.SkipHooks(s.inventory, s.hookStates, bad.Error()))
	}
	if err != nil {
		result := rollout.Result{Inventory: s.inventory, HookStates: s.hookStates}
		result.Completion.Fault = rollout.ClusterFault(err)
		return s.reportHooksPending(ctx, result, err)
	}
	limited := s.limitEvaluations(in)
	result, done, failure := s.engine(limited).BeforeDelete(ctx, in)
	if done && limited.transient != nil {
		// A skipped hook may lose data, so one slow evaluation is retried.
		result = rollout.Result{Inventory: s.inventory, HookStates: s.hookStates, RequeueAfter: limited.retryAfter}
		result.Completion.Fault = status.Component{State: status.Failed, Reason: status.ReasonEvaluationTooSlow, Message: limited.transient.Text}
		return s.reportHooksPending(ctx, result, nil)
	}
	if done {
		return true, 0, s.recordDeletionBegun(ctx, result)
	}
	return s.reportHooksPending(ctx, result, failure)
}

// reportHooksPending reports why the hooks before deletion have not finished.
func (s *state) reportHooksPending(ctx context.Context, result rollout.Result, failure error) (bool, time.Duration, error) {
	result.Completion.Deleting, result.Completion.Change = true, status.Unchanged
	if fault := &result.Completion.Fault; fault.Reason != "" {
		fault.Message = fmt.Sprintf("the hooks before deletion cannot run: %s; %s", fault.Message, s.withoutHooks())
	}
	again, err := s.conclude(ctx, result, failure)
	return false, again, err
}

// recordDeletionBegun stores that the deletion has begun before the first object is deleted.
// Otherwise a crash would make hooks run again, or report them as skipped again.
func (s *state) recordDeletionBegun(ctx context.Context, result rollout.Result) error {
	s.inventory, s.hookStates = result.Inventory, result.HookStates.WithDeletionBegun()
	result.Completion.Deleting = true
	err := s.write(ctx, s.build(result.Completion))
	if _, never := errors.AsType[*statusTooLargeError](err); err != nil && !never { // that must not block the deletion
		return err
	}
	s.recordObjectEvents(result.Events)
	return nil
}
