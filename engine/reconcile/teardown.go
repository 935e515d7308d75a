package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// Finalizer keeps a deleted custom resource until its objects are gone. Its name
// is part of the product's contract: another one would strand the resources that
// have this one.
const Finalizer = cluster.TeardownFinalizer

// finalizerState is what the finalizer should be.
type finalizerState string

const (
	finalizerPresent finalizerState = "present"
	finalizerAbsent  finalizerState = "absent"
)

// teardown deletes the objects of a deleted resource, in order, from the
// inventory alone, and lets the resource go when none is left.
func (s *state) teardown(ctx context.Context) (time.Duration, error) {
	if !slices.Contains(s.cr.GetFinalizers(), Finalizer) {
		return 0, nil // garbage collection does it
	}
	if ready, again, err := s.beforeDelete(ctx); err != nil || !ready {
		return again, err
	}
	return s.deleteObjects(ctx)
}

// deleteObjects deletes what the inventory has, and needs nothing else.
func (s *state) deleteObjects(ctx context.Context) (time.Duration, error) {
	if slices.Contains(s.cr.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		s.inventory = s.inventory.Orphaned() // kubectl delete --cascade=orphan
	}
	result, failure := rollout.Teardown(ctx, s.Cluster, s.owner, s.inventory)
	s.inventory = result.Inventory
	if failure == nil && s.inventory.Len() == 0 {
		s.recordObjectEvents(result.Events)
		return 0, s.setFinalizer(ctx, finalizerAbsent)
	}
	again, err := s.report(ctx, result)
	return earliest(again, result.RequeueAfter), errors.Join(failure, err)
}

// beforeDelete runs the hooks that come before the first object is deleted, and
// reports whether the objects may go now. Once one object is on its way, they have
// had their time. A package without any is not even evaluated: nothing that it reads
// keeps a resource.
func (s *state) beforeDelete(ctx context.Context) (bool, time.Duration, error) {
	switch {
	case s.finished[deletionBegun].State == status.Verified, s.skipsHooks():
		return true, 0, nil
	case !s.program.MayRun(program.BeforeDelete):
		return true, 0, nil
	}
	in, err := s.input(ctx)
	bad, ok := errors.AsType[*configError](err)
	switch {
	case ok && bad.tenant:
		err = nil // the annotation is nothing; it would be a way round the hooks otherwise
	case ok:
		// Without its configuration the package has no say.
		return true, 0, s.recordDeletionBegun(ctx, rollout.Result{Inventory: s.inventory, HookStates: s.finished, Events: []rollout.Event{rollout.HooksSkipped(bad.Error())}})
	}
	if err != nil {
		result := rollout.Result{Inventory: s.inventory, HookStates: s.finished}
		result.Completion.Fault = rollout.ClusterFault(err)
		return s.reportHooksPending(ctx, result, err)
	}
	bounded := s.limitEvaluations(in)
	result, done, failure := s.engine(bounded).BeforeDelete(ctx, in)
	if done && bounded.maybeTransient != "" {
		// What a hook saves is lost without it, so a slow machine is given a second try.
		result = rollout.Result{Inventory: s.inventory, HookStates: s.finished, RequeueAfter: bounded.retryAfter}
		result.Completion.Fault = status.Component{State: status.Failed, Reason: status.ReasonEvaluationLimit, Message: bounded.maybeTransient}
		return s.reportHooksPending(ctx, result, nil)
	}
	if done {
		return true, 0, s.recordDeletionBegun(ctx, result)
	}
	return s.reportHooksPending(ctx, result, failure)
}

// reportHooksPending reports what keeps the hooks before deletion from ending.
func (s *state) reportHooksPending(ctx context.Context, result rollout.Result, failure error) (bool, time.Duration, error) {
	result.Completion.Deleting, result.Completion.Change = true, status.Unchanged
	if fault := &result.Completion.Fault; fault.Reason != "" {
		fault.Message = fmt.Sprintf("the hooks before deletion cannot run: %s; %s", fault.Message, s.withoutHooks())
	}
	again, err := s.conclude(ctx, result, failure)
	return false, again, err
}

// recordDeletionBegun notes that the objects may go, before the first one does: a hook must not
// run again, and none be reported as skipped again, because a crash has forgotten it.
func (s *state) recordDeletionBegun(ctx context.Context, result rollout.Result) error {
	s.inventory, s.finished = result.Inventory, maps.Clone(result.HookStates)
	if s.finished == nil {
		s.finished = map[string]rollout.HookState{}
	}
	s.finished[deletionBegun] = rollout.HookState{State: status.Verified}
	result.Completion.Deleting = true
	err := s.write(ctx, s.build(result.Completion))
	if _, never := errors.AsType[*statusTooLargeError](err); err != nil && !never { // that must not keep it for ever
		return err
	}
	s.recordObjectEvents(result.Events)
	return nil
}

// deletionBegun stands among the hooks, as Verified once the objects may go, and as
// Waiting while nobody knows whether hooks come before that. It is no name of a hook.
const deletionBegun = "hooks.beforeDelete"

// setFinalizer applies the finalizer, or applies nothing, which takes it away.
func (s *state) setFinalizer(ctx context.Context, want finalizerState) error {
	has := slices.Contains(s.cr.GetFinalizers(), Finalizer)
	if has == (want == finalizerPresent) {
		return nil
	}
	u := s.identity()
	if want == finalizerPresent {
		u.SetFinalizers([]string{Finalizer})
	}
	if err := s.Resources.ApplyFinalizers(ctx, u); err != nil {
		return fmt.Errorf("%s: finalizer: %w", s.owner, err)
	}
	s.cr.SetFinalizers(u.GetFinalizers())
	return nil
}
