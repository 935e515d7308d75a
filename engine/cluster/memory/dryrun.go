package memory

import (
	"context"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// dryRun is a Cluster whose writes are validated but not stored.
type dryRun struct{ *Cluster }

// DryRun implements Cluster.
func (m *Cluster) DryRun() cluster.Cluster { return dryRun{m} }

// unkept is a keeper that stores nothing.
func unkept(_, next *unstructured.Unstructured) *unstructured.Unstructured { return next }

// Apply implements Cluster.
func (d dryRun) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.applyAs(ctx, cluster.FieldManager, object, unkept)
}

// HandOver implements Cluster.
func (d dryRun) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	_, err := d.applyAs(ctx, cluster.HandOverManager, fields, unkept)
	return err
}

// Replace implements Cluster.
func (d dryRun) Replace(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.replace(object, unkept)
}

// Delete implements Cluster.
func (dryRun) Delete(context.Context, cluster.Ref, types.UID) error { return nil }

// ApplyStatus implements Cluster.
func (dryRun) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }

// ApplyFinalizers implements Cluster.
func (dryRun) ApplyFinalizers(context.Context, *unstructured.Unstructured) error { return nil }
