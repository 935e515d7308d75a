package controller

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// servesResourcesIn reports whether the custom resources of a namespace are served; "" is that of cluster-scoped ones.
func (o Options) servesResourcesIn(namespace string) bool {
	return namespace == "" || o.Namespaces.Has(namespace)
}

// selection selects the custom resources that are served in a list.
func (o Options) selection() client.ListOption {
	if o.Selector == nil {
		return client.MatchingLabelsSelector{Selector: labels.Everything()}
	}
	return client.MatchingLabelsSelector{Selector: o.Selector}
}

// deselectedResources are the resources of a kind that a watch with a selector no longer sees: they are deleted, or
// have lost a label. A resource that has lost its label is left as it is, with its objects, because another process
// may select it. An event says so, since the status belongs to the process that serves the resource now.
type deselectedResources struct {
	selector labels.Selector
	kind     schema.GroupVersionKind
	direct   client.Reader
	log      logr.Logger
	recorder reconcile.Recorder

	mu   sync.Mutex
	keys map[types.NamespacedName]bool
}

func newDeselectedResources(selector labels.Selector, kind schema.GroupVersionKind, direct client.Reader, log logr.Logger, recorder reconcile.Recorder) *deselectedResources {
	return &deselectedResources{selector: selector, kind: kind, direct: direct, log: log, recorder: recorder, keys: map[types.NamespacedName]bool{}}
}

// predicate returns a predicate that notes what a watch sees no more, and lets all events through. For nil it notes nothing.
func (d *deselectedResources) predicate() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if d != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.keys[client.ObjectKeyFromObject(e.Object)] = true
		}
		return true
	}}
}

// report records on a resource that has lost its label that it is left as it is. It asks the API server once for each
// resource that a watch no longer sees.
func (d *deselectedResources) report(ctx context.Context, key types.NamespacedName) error {
	if !d.take(key) {
		return nil
	}
	u := watch.NewObject(d.kind)
	err := d.direct.Get(ctx, key, u)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.keys[key] = true // it is asked about again
		return err
	case d.selector.Matches(labels.Set(u.GetLabels())):
		return nil // it was recreated, or has the label again
	}
	e := reconcile.NotSelected(d.selector.String())
	d.log.Info(e.Message, "kind", d.kind.GroupKind().String(), "resource", key.String())
	d.recorder.Record(u, e)
	return nil
}

// take forgets a resource, and reports whether it was noted. nil has none.
func (d *deselectedResources) take(key types.NamespacedName) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	noted := d.keys[key]
	delete(d.keys, key)
	return noted
}

// selectedResources is a cluster of plans with the resources that a selector selects; nil selects all.
type selectedResources struct {
	plan.Snapshot

	selector labels.Selector
}

// Resources implements plan.Snapshot.
func (s selectedResources) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	all, err := s.Snapshot.Resources(ctx, kind)
	if err != nil || s.selector == nil {
		return all, err
	}
	var out []*unstructured.Unstructured
	for _, u := range all {
		if s.selector.Matches(labels.Set(u.GetLabels())) {
			out = append(out, u)
		}
	}
	return out, nil
}
