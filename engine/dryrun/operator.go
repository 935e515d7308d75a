package dryrun

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
)

// A Step is one reconcile of a dry run, and what followed from it.
type Step struct {
	// Number counts from 1.
	Number int
	// Resource is the custom resource that was reconciled.
	Resource cluster.Ref
	// Changes are the objects that were created, updated and deleted, in order.
	Changes []cluster.ObjectChange
	// Status is that of the resource afterwards; it is nil once that is gone.
	Status map[string]any
	// Err is why the reconcile failed; an operator would retry it.
	Err error
	// Simulated are the objects that simulated controllers changed or deleted afterwards.
	Simulated []cluster.Ref
}

// A clock shows the time of a dry run, which passes only when the dry run lets it.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// An operator reconciles the custom resources of one package, as both dry runs do.
type operator struct {
	*reconcile.Reconciler

	// evaluates is what the resources are evaluated by.
	evaluates reconcile.Package
	clock     *clock
}

// newOperator returns the operator of a package. It completes a reconciler so that a dry run
// prints the same each time: one component after another, the time of a clock, and no random
// salts. Nothing records events.
func newOperator(p *program.Program, c *clock, r *reconcile.Reconciler) operator {
	complete(r, p.GroupVersionKind(), c)
	return operator{r, p, c}
}

// complete completes a reconciler of a kind.
func complete(r *reconcile.Reconciler, kind schema.GroupVersionKind, c *clock) {
	r.Kind, r.Recorder, r.Parallel = kind, noEvents{}, 1
	r.Now = func() time.Time { return c.now }
	r.NewSalt = func() string { return program.FixedSalt }
}

// reconcile reconciles a resource once. It returns when to do so again without a change, or 0.
func (o operator) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	return o.ReconcileWithoutStatusDelay(ctx, key, o.evaluates, o.clock.pass)
}

// noEvents records no events.
type noEvents struct{}

// Record implements reconcile.Recorder.
func (noEvents) Record(*unstructured.Unstructured, rollout.Event) {}
