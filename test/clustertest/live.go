package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// live is a namespace of the API server: the cluster that the engine uses, and the backend of its Site.
type live struct {
	*cluster.Live

	server    *apiServer
	namespace string
	ctx       context.Context // of the test

	mu         sync.Mutex
	recordings map[schema.GroupVersionKind]*recording
}

// watch is used as Live.Watch: it waits until the cache holds a kind, and starts to record it.
func (l *live) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if _, err := l.server.cache.GetInformer(ctx, object(kind, "", "")); err != nil {
		return err
	}
	return l.record(kind)
}

// record starts to record the objects of a kind, unless they are recorded already.
func (l *live) record(kind schema.GroupVersionKind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.recordings[kind]; ok {
		return nil
	}
	r, err := l.server.record(l.ctx, kind, l.namespace)
	if err != nil {
		return fmt.Errorf("recording %s: %w", kind.Kind, err)
	}
	l.recordings[kind] = r
	return nil
}

// Apply implements cluster.Cluster, and starts to record the kind before.
func (l *live) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if _, err := l.Scope(ctx, u.GroupVersionKind()); err == nil {
		if err := l.record(u.GroupVersionKind()); err != nil {
			return nil, err
		}
	}
	return l.Live.Apply(ctx, u)
}

// ListCached implements cluster.Cluster. The operator reads inputs from caches of their own, which hold objects
// without the label too. The cache here does not, so inputs come from the API server.
func (l *live) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	return l.ListLive(ctx, which)
}

// Replace implements cluster.Cluster, and waits for the cache, because the write bypasses the client
// that is consistent with it.
func (l *live) Replace(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := l.Live.Replace(ctx, u)
	if err != nil {
		return nil, err
	}
	return out, l.waitForCache(ctx, cluster.RefOf(u))
}

// Delete implements cluster.Cluster, and waits until the garbage collector has processed the deletion.
func (l *live) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	if err := l.Live.Delete(ctx, ref, uid); err != nil {
		return err
	}
	err := eventually(ctx, "the garbage collector to look at "+ref.String(), func() error {
		u, err := l.GetLive(ctx, ref)
		if err == nil && u != nil && slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) && !l.hasDependents(uid) {
			err = errors.New("it has not yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.waitForCache(ctx, ref)
}

// hasDependents reports whether the garbage collector has something to wait for.
func (l *live) hasDependents(owner types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.recordings {
		if r.hasDependents(owner) {
			return true
		}
	}
	return false
}

// waitForCache waits until the cache has the current version of an object, as it has when an event
// triggers a reconcile.
func (l *live) waitForCache(ctx context.Context, ref cluster.Ref) error {
	l.mu.Lock()
	_, watched := l.recordings[ref.GroupVersionKind]
	l.mu.Unlock()
	if !watched {
		return nil
	}
	return eventually(ctx, "the cache to hold "+ref.String(), func() error {
		want, err := l.GetLive(ctx, ref)
		if err != nil {
			return err
		}
		if want != nil && want.GetLabels()[ownership.OwnerLabel] == "" {
			want = nil // the cache holds only objects with the label
		}
		got := object(ref.GroupVersionKind, "", "")
		err = l.server.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, got)
		switch {
		case apierrors.IsNotFound(err) && want == nil:
			return nil
		case err != nil:
			return err
		case want == nil:
			return errors.New("it is not gone")
		case got.GetUID() != want.GetUID() || got.GetResourceVersion() != want.GetResourceVersion():
			return fmt.Errorf("it has version %s, not %s", got.GetResourceVersion(), want.GetResourceVersion())
		}
		return nil
	})
}

func (l *live) put(ctx context.Context, manager string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := cluster.RefOf(u)
	if err := l.record(ref.GroupVersionKind); err != nil {
		return nil, err
	}
	out := u.DeepCopy()
	before, err := l.GetLive(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case before == nil:
		for _, field := range []string{"uid", "resourceVersion", "managedFields"} { // of one that it was copied from
			unstructured.RemoveNestedField(out.Object, "metadata", field)
		}
		err = l.server.admin.Create(ctx, out, client.FieldOwner(manager))
	default:
		out.SetResourceVersion(before.GetResourceVersion())
		err = l.server.admin.Update(ctx, out, client.FieldOwner(manager))
	}
	if err != nil {
		return nil, err
	}
	if wanted := u.Object["status"]; !equality.Semantic.DeepEqual(out.Object["status"], wanted) {
		out.Object["status"] = wanted
		if err := l.server.admin.Status().Update(ctx, out, client.FieldOwner(manager)); err != nil {
			return nil, fmt.Errorf("the status: %w", err)
		}
	}
	return out, l.waitForCache(ctx, ref)
}

func (l *live) remove(ctx context.Context, u *unstructured.Unstructured) error {
	uid := u.GetUID()
	err := l.server.admin.Delete(ctx, u.DeepCopy(), client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return err
	}
	return l.waitForCache(ctx, cluster.RefOf(u))
}

func (l *live) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list, err := l.server.list(ctx, kind, l.namespace)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

func (l *live) serve(ctx context.Context, kind schema.GroupVersionKind) error {
	return l.server.serve(ctx, kind)
}

func (l *live) withdraw(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := l.server.withdraw(ctx, kind); err != nil {
		return err
	}
	l.mu.Lock()
	_, watched := l.recordings[kind]
	l.mu.Unlock()
	if !watched {
		return nil
	}
	// The API server deletes the objects before it withdraws the kind, and the cache learns of it later.
	return eventually(ctx, "the cache to hold no "+kind.Kind, func() error {
		held := &unstructured.UnstructuredList{}
		held.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := l.server.cache.List(ctx, held, client.InNamespace(l.namespace)); err != nil {
			return err
		}
		if len(held.Items) > 0 {
			return fmt.Errorf("it holds %d", len(held.Items))
		}
		return nil
	})
}

func (l *live) refuse(r memory.Admission) { l.server.webhook.refuse(l.namespace, r) }

func (l *live) terminate(ctx context.Context) error {
	if err := l.server.admin.Delete(ctx, object(namespaceKind, "", l.namespace)); err != nil {
		return err
	}
	// The admission plugin learns about the deletion from a watch.
	return eventually(ctx, "the end of "+l.namespace+" to be known", func() error {
		probe := object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, l.namespace, "probe")
		if err := l.server.admin.Create(ctx, probe, client.DryRunAll); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("a ConfigMap could be created: %w", err)
		}
		return nil
	})
}
