package controller

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Finalizer keeps a deleted custom resource until its objects are gone. Its name
// is part of the product's contract: another one would strand the resources that
// have this one.
const Finalizer = "operetta.dev/teardown"

// finalizerState is what the finalizer should be.
type finalizerState string

const (
	finalizerPresent finalizerState = "present"
	finalizerAbsent  finalizerState = "absent"
)

// teardown deletes the objects of a deleted resource, in order, from the
// inventory alone, and lets the resource go when none is left.
func (s *state) teardown(ctx context.Context) (reconcile.Result, error) {
	if !slices.Contains(s.cr.GetFinalizers(), Finalizer) {
		return reconcile.Result{}, nil // garbage collection does it
	}
	result, failure := rollout.Teardown(ctx, s.cluster, s.owner, s.inventory)
	s.inventory = result.Inventory
	if failure == nil && s.inventory.Len() == 0 {
		s.recordObjects(result.Events)
		return reconcile.Result{}, s.setFinalizer(ctx, finalizerAbsent)
	}
	again, err := s.report(ctx, result)
	if err != nil {
		return reconcile.Result{}, err
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

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
	err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(cluster.FieldManager), client.ForceOwnership)
	if want == finalizerAbsent && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		return nil // the resource is gone already
	}
	if err != nil {
		return fmt.Errorf("%s: finalizer: %w", s.owner, err)
	}
	s.cr.SetFinalizers(u.GetFinalizers())
	return nil
}
