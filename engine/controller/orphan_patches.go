package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// orphanPatchStatus writes the status of Patches that no controller of a package handles, because no
// package has the kind of the target, or the target is cluster-scoped.
type orphanPatchStatus struct {
	patches cluster.Cluster
	// packagesLoaded is closed when the process has tried to load every package.
	packagesLoaded <-chan struct{}
	mapper         meta.RESTMapper
	// packaged reports whether a kind belongs to a package, here or elsewhere.
	packaged func(context.Context, schema.GroupKind) (bool, error)
}

// watchOrphanPatches adds the controller that writes the status of orphan Patches.
func (m *Manager) watchOrphanPatches() error {
	u := &orphanPatchStatus{packagesLoaded: m.packageMissing.packagesLoaded, mapper: m.manager.GetRESTMapper(), packaged: m.subsystems.has}
	c, err := m.newController("unmatched."+patch.Kind.Group, patch.Kind.Kind, "", u.reconcile, nil)
	if err != nil {
		return err
	}
	// A user who can write a Patch has it judged by each write, so events are limited.
	limited := newEventRateLimits(m.options.Log).limited(&handler.EnqueueRequestForObject{})
	if u.patches, err = m.own.patches.Reader(c, limited, predicate.Or[client.Object](patchSpecChanged, resyncOnly), nil); err != nil {
		return err
	}
	return m.manager.Add(c)
}

func (u *orphanPatchStatus) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if !isClosed(u.packagesLoaded) {
		return firstRetry, nil // the package of the kind may be about to be loaded
	}
	o, err := u.patches.GetCached(ctx, cluster.Ref{GroupVersionKind: patch.Kind, Namespace: key.Namespace, Name: key.Name})
	if err != nil || o == nil || o.GetDeletionTimestamp() != nil {
		return 0, err
	}
	p := patch.Parse(o)
	reason, message, err := u.judge(ctx, p.Target.GroupKind)
	if err != nil || reason == "" {
		return 0, err
	}
	return 0, reconcile.ReportOrphanPatch(ctx, u.patches, o, reason, message, time.Now())
}

// judge returns why no package handles the Patches for a kind, or "".
func (u *orphanPatchStatus) judge(ctx context.Context, kind schema.GroupKind) (patch.Reason, string, error) {
	mapping, err := u.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return patch.NoSuchKind, fmt.Sprintf("the cluster does not serve %s", kind), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("looking up %s: %w", kind, err)
	}
	packaged, err := u.packaged(ctx, kind)
	switch {
	case err != nil:
		return "", "", err
	case !packaged:
		return patch.NoSuchKind, fmt.Sprintf("%s is not the kind of a package; a Patch is about a custom resource that a package serves", kind), nil
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		return patch.TargetClusterScoped, fmt.Sprintf("%s is cluster-scoped, and a Patch is about a resource of its own namespace", kind), nil
	}
	return "", "", nil
}
