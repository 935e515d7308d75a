package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// parallel is how many components of one resource are applied at once.
const parallel = 4

// reconciler reconciles the custom resources of one package.
type reconciler struct {
	kind     schema.GroupVersionKind
	program  atomic.Pointer[program.Program]
	client   client.Client
	cluster  cluster.Cluster
	recorder events.EventRecorder
	pace     *pace
	now      func() time.Time
}

var _ reconcile.Reconciler = (*reconciler)(nil)

// state is what one reconcile works on.
type state struct {
	*reconciler
	log       logr.Logger
	program   *program.Program
	cr        *unstructured.Unstructured
	before    map[string]any
	owner     plan.Owner
	inventory plan.Inventory
}

// Reconcile runs one rollout, or one step of a teardown.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.fetch(ctx, req)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case s == nil:
		r.pace.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	case s.cr.GetDeletionTimestamp() != nil:
		return s.teardown(ctx)
	}
	return s.rollOut(ctx)
}

// fetch reads the custom resource; it returns nil when there is none.
func (r *reconciler) fetch(ctx context.Context, req reconcile.Request) (*state, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.kind)
	if err := r.client.Get(ctx, req.NamespacedName, cr); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s %s: %w", r.kind.Kind, req.NamespacedName, err)
	}
	s := &state{
		reconciler: r,
		log:        log.FromContext(ctx),
		program:    r.program.Load(),
		cr:         cr,
		owner: plan.Owner{
			GroupVersionKind: r.kind, Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID(),
		},
	}
	s.before, _, _ = unstructured.NestedMap(cr.Object, "status")
	inventory, err := decodeInventory(s.before)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.kind.Kind, req.NamespacedName, err)
	}
	s.inventory = inventory
	return s, nil
}

// rollOut runs the package once and reports what came of it.
func (s *state) rollOut(ctx context.Context) (reconcile.Result, error) {
	engine := &rollout.Engine{Package: s.program, Cluster: s.cluster, Parallel: parallel}
	result, failure := engine.Run(ctx, rollout.Input{
		Owner: s.owner, CR: s.cr.Object, Inventory: s.inventory, Protect: s.protect,
	})
	s.inventory = result.Inventory
	again, err := s.report(ctx, result)
	if err != nil {
		return reconcile.Result{}, err
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	return reconcile.Result{RequeueAfter: earliest(result.RequeueAfter, again)}, nil
}

// earliest returns the shorter of two waits, of which 0 is none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// protect stores an inventory before its objects are written, and before that the
// finalizer, if the objects have to be deleted in an order.
func (s *state) protect(ctx context.Context, inventory plan.Inventory, preview status.Completion) error {
	if inventory.NeedsOrder() {
		if err := s.setFinalizer(ctx, finalizerPresent); err != nil {
			return err
		}
	}
	s.inventory = inventory
	return s.write(ctx, s.build(preview))
}
