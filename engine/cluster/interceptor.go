package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A Write says what is done to which object.
type Write struct {
	// Verb is in words that the object follows, such as "apply".
	Verb string
	Ref  Ref
}

// An Interceptor is a Cluster whose writes are carried out by a function, like a client of package interceptor of
// controller-runtime.
type Interceptor struct {
	Cluster

	// Intercept is called for each write but those of dry runs. do carries it out on a cluster.
	Intercept func(ctx context.Context, w Write, do func(Cluster) error) error
}

// Apply implements Cluster.
func (i Interceptor) Apply(ctx context.Context, object *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	err = i.Intercept(ctx, Write{"apply", RefOf(object)}, func(on Cluster) error {
		out, err = on.Apply(ctx, object)
		return err
	})
	return out, err
}

// Replace implements Cluster.
func (i Interceptor) Replace(ctx context.Context, object *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	err = i.Intercept(ctx, Write{"replace", RefOf(object)}, func(on Cluster) error {
		out, err = on.Replace(ctx, object)
		return err
	})
	return out, err
}

// HandOver implements Cluster.
func (i Interceptor) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	return i.Intercept(ctx, Write{"hand over", RefOf(fields)}, func(on Cluster) error { return on.HandOver(ctx, fields) })
}

// Delete implements Cluster.
func (i Interceptor) Delete(ctx context.Context, ref Ref, uid types.UID) error {
	return i.Intercept(ctx, Write{"delete", ref}, func(on Cluster) error { return on.Delete(ctx, ref, uid) })
}

// ApplyStatus implements Cluster.
func (i Interceptor) ApplyStatus(ctx context.Context, object *unstructured.Unstructured) error {
	return i.Intercept(ctx, Write{"write the status of", RefOf(object)}, func(on Cluster) error { return on.ApplyStatus(ctx, object) })
}

// ApplyFinalizers implements Cluster.
func (i Interceptor) ApplyFinalizers(ctx context.Context, object *unstructured.Unstructured) error {
	return i.Intercept(ctx, Write{"set the finalizers of", RefOf(object)}, func(on Cluster) error { return on.ApplyFinalizers(ctx, object) })
}
