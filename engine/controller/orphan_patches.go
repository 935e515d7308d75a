package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// orphanPatchStatus writes the status of patches that no reconciler of a package handles:
// the target is of a kind that no package serves, or is cluster-scoped.
type orphanPatchStatus struct {
	reader *patchReader
	// packagesLoaded is closed when every package was tried.
	packagesLoaded <-chan struct{}
	mapper         meta.RESTMapper
	// packaged reports whether a kind is that of a package, here or elsewhere.
	packaged func(context.Context, schema.GroupKind) (bool, error)
}

// watchOrphanPatches adds the controller that writes the status of orphan patches.
func (m *Manager) watchOrphanPatches() error {
	u := &orphanPatchStatus{packagesLoaded: m.unserved.packagesLoaded, mapper: m.manager.GetRESTMapper(), packaged: m.subsystems.has}
	c, err := m.newController("unmatched."+patch.Kind.Group, patch.Kind.Kind, "", u.reconcile, nil)
	if err != nil {
		return err
	}
	// Whoever may write a Patch has it judged by each write.
	paced := newEventRateLimits(m.options.Log).limited(&handler.EnqueueRequestForObject{})
	if u.reader, err = m.patches.join(c, paced, predicate.Or[client.Object](specOnly, repeated)); err != nil {
		return err
	}
	return m.manager.Add(c)
}

// repeated lets the resync through: a kind may have come or gone.
var repeated = predicate.TypedFuncs[client.Object]{
	CreateFunc:  func(event.TypedCreateEvent[client.Object]) bool { return false },
	DeleteFunc:  func(event.TypedDeleteEvent[client.Object]) bool { return false },
	UpdateFunc:  resynced,
	GenericFunc: func(event.TypedGenericEvent[client.Object]) bool { return false },
}

func (u *orphanPatchStatus) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	select {
	case <-u.packagesLoaded:
	default:
		return firstRetry, nil // a package may be about to have the kind
	}
	o := object(patch.Kind)
	err := u.reader.client.Get(ctx, key, o)
	if err != nil || o.GetDeletionTimestamp() != nil {
		return 0, client.IgnoreNotFound(err)
	}
	p := patch.Parse(o)
	reason, message, err := u.judge(ctx, p.Target.GroupKind)
	if err != nil || reason == "" {
		return 0, err
	}
	return 0, reconcile.ReportOrphanPatch(ctx, u.reader, o, reason, message, time.Now())
}

// judge returns why no package handles the patches of a kind, or "".
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
