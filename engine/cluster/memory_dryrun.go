package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// memoryDryRun is a Memory whose writes are checked and not kept.
type memoryDryRun struct{ *Memory }

// DryRun implements Cluster.
func (m *Memory) DryRun() Cluster { return memoryDryRun{m} }

// unkept answers a write and keeps nothing.
func unkept(_, next *unstructured.Unstructured) *unstructured.Unstructured { return next }

// Apply implements Cluster.
func (d memoryDryRun) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.applyAs(ctx, FieldManager, object, unkept)
}

// Relinquish implements Cluster.
func (d memoryDryRun) Relinquish(ctx context.Context, fields *unstructured.Unstructured) error {
	_, err := d.applyAs(ctx, relinquisher, fields, unkept)
	return err
}

// Replace implements Cluster.
func (d memoryDryRun) Replace(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.replace(object, unkept)
}

// Delete implements Cluster.
func (memoryDryRun) Delete(context.Context, Ref, types.UID) error { return nil }
