// Package snapshot has clusters in memory on which an operator has rolled resources out, for the tests of plans.
package snapshot

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/program"
)

// Served is a cluster in memory on which an operator has rolled resources out. It is a plan.Snapshot.
type Served struct{ World *dryrun.World }

// Serve rolls resources out by a package, beside other objects.
func Serve(ctx context.Context, p *program.Program, objects ...*unstructured.Unstructured) (Served, error) {
	w := dryrun.New(types.NamespacedName{}, p)
	for _, u := range objects {
		if _, err := w.Put(u); err != nil {
			return Served{}, err
		}
	}
	return Served{w}, w.Run(ctx, func(dryrun.Step) {})
}

// Resources implements plan.Snapshot.
func (s Served) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	return s.List(ctx, cluster.Selection{Kind: kind})
}

// Get implements plan.Snapshot.
func (s Served) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return s.World.Cluster.GetLive(ctx, ref)
}

// List implements plan.Snapshot.
func (s Served) List(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	return s.World.Cluster.ListLive(ctx, which)
}

// Owned implements plan.Snapshot.
func (s Served) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	return s.World.Cluster.Owned(ctx, namespace, label, value)
}

// Scope implements plan.Snapshot.
func (s Served) Scope(_ context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	return s.World.Scope(kind)
}
