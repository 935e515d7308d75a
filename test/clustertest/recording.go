package clustertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A recording has the events of a watch of one kind in a namespace. A write that changes nothing causes
// no event.
type recording struct {
	mu      sync.Mutex
	current map[string]*unstructured.Unstructured // by name
	events  []cluster.ObjectChange
}

// record begins a recording, which ends with the context.
func (p *apiServer) record(ctx context.Context, kind schema.GroupVersionKind, namespace string) (*recording, error) {
	list, err := p.list(ctx, kind, namespace)
	if err != nil {
		return nil, err
	}
	r := &recording{current: map[string]*unstructured.Unstructured{}}
	for i := range list.Items {
		r.current[list.Items[i].GetName()] = &list.Items[i]
	}
	w, err := p.admin.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, w.Stop)
	go func() {
		for e := range w.ResultChan() {
			r.add(e)
		}
	}()
	return r, nil
}

// operations maps the event types of a watch.
var operations = map[watch.EventType]cluster.Operation{watch.Added: cluster.Created, watch.Modified: cluster.Updated, watch.Deleted: cluster.Deleted}

// add records one event of the watch.
func (r *recording) add(e watch.Event) {
	u, ok := e.Object.(*unstructured.Unstructured)
	op, known := operations[e.Type]
	if !ok || !known {
		return // an error event: the kind is no longer served
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.current[u.GetName()]
	r.current[u.GetName()] = u
	if op == cluster.Deleted {
		delete(r.current, u.GetName())
	}
	r.events = append(r.events, cluster.ObjectChange{Change: cluster.Change{Operation: op, Ref: cluster.RefOf(u)}, Before: before, Object: u})
}

// take returns the events since the last call.
func (r *recording) take() []cluster.ObjectChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.events
	r.events = nil
	return out
}

// hasDependents reports whether something that is there has an owner.
func (r *recording) hasDependents(owner types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.current {
		if slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }) {
			return true
		}
	}
	return false
}

// versions returns the versions of the objects by name, as of the last event of the watch.
func (r *recording) versions() map[string]identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]identity{}
	for name, u := range r.current {
		out[name] = identity{u.GetUID(), u.GetResourceVersion()}
	}
	return out
}

// identity is one version of an object.
type identity struct {
	uid     types.UID
	version string
}

// waitForRecording waits until a recording has the current versions of all objects.
func (l *live) waitForRecording(ctx context.Context, kind schema.GroupVersionKind, r *recording) error {
	return eventually(ctx, "the watch of "+kind.Kind, func() error {
		list, err := l.server.list(ctx, kind, l.namespace)
		if apierrors.IsNotFound(err) {
			return nil // the kind is no longer served
		}
		if err != nil {
			return err
		}
		seen := r.versions()
		if len(seen) != len(list.Items) {
			return fmt.Errorf("it knows %d objects of %d", len(seen), len(list.Items))
		}
		for _, u := range list.Items {
			if seen[u.GetName()] != (identity{u.GetUID(), u.GetResourceVersion()}) {
				return errors.New("it has another version of " + u.GetName())
			}
		}
		return nil
	})
}

// events implements backend. It sorts by resourceVersion, which etcd counts over all kinds.
func (l *live) events(ctx context.Context) ([]cluster.ObjectChange, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []cluster.ObjectChange
	for kind, r := range l.recordings {
		if err := l.waitForRecording(ctx, kind, r); err != nil {
			return nil, err
		}
		out = append(out, r.take()...)
	}
	slices.SortStableFunc(out, func(a, b cluster.ObjectChange) int {
		return cmp.Compare(resourceVersionOf(a.Object), resourceVersionOf(b.Object))
	})
	return out, nil
}

func resourceVersionOf(u *unstructured.Unstructured) int64 {
	n, _ := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	return n
}
