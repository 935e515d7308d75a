package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/lifecycle"
	"operetta.dev/engine/patch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// patches reads patches from the cache and reconciles exactly the resources that
// they are about. Where the API server does not serve them when it is first asked,
// there are none until the process is started anew.
//
// Nothing is rolled out before it is known whether there are patches: it would take
// back what they have changed.
type patches struct {
	// client reads from the cache, and sees what this process wrote.
	client client.Client
	// direct asks the API server itself.
	direct client.Reader
	cache  cache.Cache
	// namespace is where patches are looked for; "" is everywhere.
	namespace string
	log       logr.Logger

	mu    sync.Mutex
	state serving
	// readers are told about the patches of their kinds.
	readers []reader
}

// reader is a controller and the kind that it serves.
type reader struct {
	kind       schema.GroupKind
	controller controller.Controller
}

// serving says whether there can be patches.
type serving string

// What is known of that; "" is nothing yet.
const (
	servingYes serving = "Yes"
	servingNo  serving = "No"
)

var _ lifecycle.Patches = (*patches)(nil)

// Start implements manager.Runnable: it asks until the API server has answered, so
// that a patch for a resource that does not exist is told so.
func (p *patches) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, firstRetry, true, func(ctx context.Context) (bool, error) {
		_, err := p.served(ctx)
		return err == nil, nil
	})
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: whoever only reads
// need not be elected.
func (p *patches) NeedLeaderElection() bool { return false }

// join makes patches known to a reader.
func (p *patches) join(r reader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers = append(p.readers, r)
	if p.state != servingYes {
		return nil // it is told when that is known
	}
	return p.tell(r)
}

// tell starts the watch of a reader.
func (p *patches) tell(r reader) error {
	toTarget := handler.TypedEnqueueRequestsFromMapFunc(r.requests)
	return r.controller.Watch(source.Kind[client.Object](p.cache, object(patch.Kind), toTarget, specOnly))
}

// served reports whether there can be patches, and starts their watch.
func (p *patches) served(ctx context.Context) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != "" {
		return p.state == servingYes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := p.direct.List(ctx, newList(patch.Kind), client.InNamespace(p.namespace), client.Limit(1))
	if why, none := withoutPatches(err); none {
		p.log.Info("patches are not looked at: " + why)
		p.state = servingNo
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for patches: %w", err)
	}
	for _, r := range p.readers {
		if err := p.tell(r); err != nil {
			return false, err
		}
	}
	p.state = servingYes
	return true, nil
}

// withoutPatches reports whether an error of a list says that there are no patches for
// this operator, and why.
func withoutPatches(err error) (string, bool) {
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return "the cluster does not serve them", true
	case apierrors.IsForbidden(err):
		return "the operator may not read them: " + err.Error(), true
	}
	return "", false
}

// requests returns the resource of a kind that a patch is about. Of an update both
// sides are asked about, so that a patch can move from one resource to another.
func (r reader) requests(_ context.Context, o client.Object) []reconcile.Request {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	p := patch.Parse(u)
	if p.Target.GroupKind != r.kind || p.Target.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Target.Name}}}
}

// specOnly leaves out the changes of a patch's status, which are the engine's own.
var specOnly = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// List implements lifecycle.Patches.
func (p *patches) List(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	served, err := p.served(ctx)
	if err != nil || !served {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return listPatches(ctx, p.client, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
}

func listPatches(ctx context.Context, r client.Reader, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	list := newList(patch.Kind)
	if err := r.List(ctx, list, options...); err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// ApplyStatus implements lifecycle.Patches.
func (p *patches) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	err := p.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(cluster.FieldManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one has its name
	}
	return err
}

// rehearsedPatches reads patches from the API server and tells them nothing.
type rehearsedPatches struct{ reader client.Reader }

var _ lifecycle.Patches = rehearsedPatches{}

// List implements lifecycle.Patches.
func (r rehearsedPatches) List(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	out, err := listPatches(ctx, r.reader, client.InNamespace(namespace))
	if _, none := withoutPatches(err); none {
		return nil, nil
	}
	return out, err
}

// ApplyStatus implements lifecycle.Patches.
func (rehearsedPatches) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }
