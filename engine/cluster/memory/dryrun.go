package memory

import (
	"context"
	"strconv"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// dryRun is a Cluster whose writes are validated but not stored.
type dryRun struct{ *Cluster }

// DryRun implements Cluster.
func (m *Cluster) DryRun() cluster.Cluster { return dryRun{m} }

// unkept is a keeper that stores nothing. The response has what a server would set.
func (d dryRun) unkept(live, next *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		d.unstored++
		next.SetUID(types.UID("uid-unstored-" + strconv.FormatInt(d.unstored, 10)))
		next.SetGeneration(firstGeneration(next.GroupVersionKind()))
		next.SetCreationTimestamp(timeOf(d.version))
		return next
	}
	if next.SetGeneration(live.GetGeneration()); !sameWithout(live, next, "metadata", "status") {
		countUp(next)
	}
	return next
}

// Apply implements Cluster.
func (d dryRun) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.applyAs(ctx, cluster.FieldManager, object, d.unkept)
}

// HandOver implements Cluster.
func (d dryRun) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	_, err := d.applyAs(ctx, cluster.HandOverManager, fields, d.unkept)
	return err
}

// Replace implements Cluster.
func (d dryRun) Replace(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return d.replace(object, d.unkept)
}

// Delete implements Cluster.
func (dryRun) Delete(context.Context, cluster.Ref, types.UID) error { return nil }

// ApplyStatus implements Cluster.
func (dryRun) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }

// ApplyFinalizers implements Cluster.
func (dryRun) ApplyFinalizers(context.Context, *unstructured.Unstructured) error { return nil }
