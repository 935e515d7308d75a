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

// live is a namespace of the API server: the cluster that is tested, and its backend.
type live struct {
	*cluster.Live

	plane     *apiServer
	namespace string
	ctx       context.Context // of the test

	mu         sync.Mutex
	recordings map[schema.GroupVersionKind]*recording
}

// watch is Live.Watch: it waits until the cache holds a kind, and records it from then on.
func (l *live) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if _, err := l.plane.cache.GetInformer(ctx, object(kind, "", "")); err != nil {
		return err
	}
	return l.record(kind)
}

// record records a kind from the first call on.
func (l *live) record(kind schema.GroupVersionKind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.recordings[kind]; ok {
		return nil
	}
	r, err := l.plane.record(l.ctx, kind, l.namespace)
	if err != nil {
		return fmt.Errorf("recording %s: %w", kind.Kind, err)
	}
	l.recordings[kind] = r
	return nil
}

// Apply implements cluster.Cluster, and records what it does.
func (l *live) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if _, err := l.Scope(ctx, u.GroupVersionKind()); err == nil {
		if err := l.record(u.GroupVersionKind()); err != nil {
			return nil, err
		}
	}
	return l.Live.Apply(ctx, u)
}

// Replace implements cluster.Cluster, and waits for the cache, which it goes past.
func (l *live) Replace(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := l.Live.Replace(ctx, u)
	if err != nil {
		return nil, err
	}
	return out, l.cached(ctx, cluster.RefOf(u))
}

// Delete implements cluster.Cluster, and gives the garbage collector its turn.
func (l *live) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	if err := l.Live.Delete(ctx, ref, uid); err != nil {
		return err
	}
	err := eventually(ctx, "the garbage collector to look at "+ref.String(), func() error {
		u, err := l.GetLive(ctx, ref)
		if err == nil && u != nil && slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents) && !l.dependents(uid) {
			err = errors.New("it has not yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.cached(ctx, ref)
}

// dependents reports whether the garbage collector has something to wait for.
func (l *live) dependents(owner types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.recordings {
		if r.dependents(owner) {
			return true
		}
	}
	return false
}

// cached waits until the cache holds what the API server does, as a reconcile would
// find it that an event has caused.
func (l *live) cached(ctx context.Context, ref cluster.Ref) error {
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
			want = nil // it is not for the cache
		}
		got := object(ref.GroupVersionKind, "", "")
		err = l.plane.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, got)
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
		err = l.plane.admin.Create(ctx, out, client.FieldOwner(manager))
	default:
		out.SetResourceVersion(before.GetResourceVersion())
		err = l.plane.admin.Update(ctx, out, client.FieldOwner(manager))
	}
	if err != nil {
		return nil, err
	}
	if wanted := u.Object["status"]; !equality.Semantic.DeepEqual(out.Object["status"], wanted) {
		out.Object["status"] = wanted
		if err := l.plane.admin.Status().Update(ctx, out, client.FieldOwner(manager)); err != nil {
			return nil, fmt.Errorf("the status: %w", err)
		}
	}
	return out, l.cached(ctx, ref)
}

func (l *live) remove(ctx context.Context, u *unstructured.Unstructured) error {
	uid := u.GetUID()
	err := l.plane.admin.Delete(ctx, u.DeepCopy(), client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return err
	}
	return l.cached(ctx, cluster.RefOf(u))
}

func (l *live) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list, err := l.plane.list(ctx, kind, l.namespace)
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
	return l.plane.serve(ctx, kind)
}

func (l *live) withdraw(ctx context.Context, kind schema.GroupVersionKind) error {
	return l.plane.withdraw(ctx, kind)
}

func (l *live) refuse(r memory.Admission) { l.plane.webhook.refuse(l.namespace, r) }

func (l *live) terminate(ctx context.Context) error {
	if err := l.plane.admin.Delete(ctx, object(namespaceKind, "", l.namespace)); err != nil {
		return err
	}
	// Admission learns of it by a watch.
	return eventually(ctx, "the end of "+l.namespace+" to be known", func() error {
		probe := object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, l.namespace, "probe")
		if err := l.plane.admin.Create(ctx, probe, client.DryRunAll); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("a ConfigMap could be created: %w", err)
		}
		return nil
	})
}
