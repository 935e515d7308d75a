package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchTargets maps Patches to the resources of a kind.
type patchTargets struct {
	kind  schema.GroupVersionKind
	scope func(context.Context, schema.GroupVersionKind) (cluster.Scope, error)
}

// requests returns the resource that a Patch is about. A handler asks for both sides of an
// update, so that a Patch can move from one resource to another.
func (t patchTargets) requests(ctx context.Context, o client.Object) []ctrl.Request {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	p := patch.Parse(u)
	if p.Target.GroupKind != t.kind.GroupKind() || p.Target.Name == "" {
		return nil
	}
	if scope, err := t.scope(ctx, t.kind); err == nil && scope == cluster.ClusterScoped {
		return nil // a request with a namespace would run at the same time as the one without
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Target.Name}}}
}
