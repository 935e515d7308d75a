package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// patches watches patches for whoever reads them. Where the API server does not serve
// them, or the operator may not read them, there are none until that changes.
//
// Nothing is rolled out before it is known whether there are patches: it would take
// back what they have changed.
type patches struct {
	// client reads from the cache, and sees what this process wrote. The cache has
	// nothing else: one that cannot be filled holds up nobody else.
	client client.Client
	cache  cache.Cache
	errors *watchErrors
	// direct asks the API server itself.
	direct client.Reader
	// namespace is where patches are looked for; "" is everywhere.
	namespace string
	log       logr.Logger

	mu      sync.Mutex
	state   availability
	readers []*patchReader
}

// availability says whether there can be patches.
type availability string

// What is known of that; "" is nothing yet.
const (
	patchesServed    availability = "Yes"
	patchesNotServed availability = "No"
)

// newPatches returns the patches that a manager reads.
func newPatches(mgr manager.Manager, direct client.Reader, o Options) (*patches, error) {
	p := &patches{direct: direct, errors: &watchErrors{}, namespace: o.CustomResourceNamespace, log: o.Log}
	options := cacheOptions(mgr)
	options.DefaultNamespaces = only(p.namespace)
	options.DefaultWatchErrorHandler = p.errors.handle
	options.SyncPeriod = new(resync)
	options.DefaultTransform = trimmed
	var err error
	if p.cache, err = cache.New(mgr.GetConfig(), options); err != nil {
		return nil, fmt.Errorf("creating the cache: %w", err)
	}
	if p.client, err = cachedClient(mgr, p.cache); err != nil {
		return nil, err
	}
	if err := mgr.Add(p.cache); err != nil {
		return nil, err
	}
	return p, mgr.Add(p)
}

// trimmed is a Patch as it is kept: anybody who may write one could otherwise fill the
// memory.
func trimmed(o any) (any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		patch.Trim(u)
	}
	return o, nil
}

// Start implements manager.Runnable: it asks until there can be patches.
func (p *patches) Start(ctx context.Context) error {
	for state, err := p.known(ctx); state != patchesServed; state, err = p.askAgain(ctx) {
		again := patchesAgain
		if err != nil {
			again = firstRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: whoever only reads
// need not be elected.
func (p *patches) NeedLeaderElection() bool { return false }

// known returns whether there can be patches, and asks the API server if it has not
// said so yet.
func (p *patches) known(ctx context.Context) (availability, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != "" {
		return p.state, nil
	}
	why, err := p.ask(ctx) // who else wants to know waits for the same answer
	if err != nil {
		return "", err
	}
	return p.learn(why)
}

// askAgain asks although there is an answer, which others go on with meanwhile.
func (p *patches) askAgain(ctx context.Context) (availability, error) {
	why, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.learn(why)
}

// ask asks the API server why there can be no patches; "" is that there can.
func (p *patches) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := p.direct.List(ctx, newList(patch.Kind), client.InNamespace(p.namespace), client.Limit(1))
	if why, none := withoutPatches(err); none {
		return why, nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for patches: %w", err)
	}
	return "", nil
}

// learn takes an answer over, and begins to watch if there can be patches.
func (p *patches) learn(why string) (availability, error) {
	switch {
	case why != "" && p.state == "":
		p.state = patchesNotServed
		p.log.Info("patches are not looked at: " + why)
	case why == "" && p.state != patchesServed:
		for _, r := range p.readers {
			if err := r.begin(); err != nil {
				return "", err
			}
		}
		if p.state == patchesNotServed {
			p.log.Info("patches are looked at from now on")
		}
		p.state = patchesServed
	}
	return p.state, nil
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

// A patchReader reads patches for one controller, which reconciles what they are about.
type patchReader struct {
	cluster.Cluster // of the cache of patches
	*patches

	controller controller.Controller
	handler    handler.EventHandler
	predicate  predicate.Predicate
	// watch is set as soon as there can be patches.
	watch *pendingWatch
}

var _ cluster.Cluster = (*patchReader)(nil)

// join returns what reads patches for a controller.
func (p *patches) join(c controller.Controller, h handler.EventHandler, which predicate.Predicate) (*patchReader, error) {
	r := &patchReader{Cluster: &cluster.Live{Client: p.client}, patches: p, controller: c, handler: h, predicate: which}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers = append(p.readers, r)
	if p.state != patchesServed {
		return r, nil // it begins when there can be patches
	}
	return r, r.begin()
}

// begin starts the watch of a reader, once.
func (r *patchReader) begin() error {
	if r.watch != nil {
		return nil
	}
	// It waits for nothing, so that there is nothing to end.
	informer, err := r.cache.GetInformer(context.Background(), object(patch.Kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching patches: %w", err)
	}
	o := newPendingWatch(patch.Kind, informer.HasSyncedChecker().Done(), r.errors)
	r.watch = o
	// A controller that starts takes no watch until it has started, and others must
	// not wait for that.
	go func() {
		if err := r.controller.Watch(o.source(informer, r.handler, r.predicate)); err != nil {
			r.log.Error(err, "changes of patches are not noticed")
		}
	}()
	return nil
}

// ListCached implements cluster.Cluster.
func (r *patchReader) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	if state, err := r.known(ctx); err != nil || state == patchesNotServed {
		return nil, err
	}
	r.mu.Lock()
	w := r.watch
	r.mu.Unlock()
	if err := w.await(ctx); err != nil {
		return nil, err
	}
	return cluster.List(ctx, r.client, which, client.UnsafeDisableDeepCopy)
}

// targets maps patches to the resources of a kind.
type targets struct {
	kind  schema.GroupVersionKind
	scope func(context.Context, schema.GroupVersionKind) (cluster.Scope, error)
}

// requests returns the resource that a patch is about. Of an update both sides are
// asked about, so that a patch can move from one resource to another.
func (t targets) requests(ctx context.Context, o client.Object) []ctrl.Request {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	p := patch.Parse(u)
	if p.Target.GroupKind != t.kind.GroupKind() || p.Target.Name == "" {
		return nil
	}
	if scope, err := t.scope(ctx, t.kind); err == nil && scope == cluster.ClusterScoped {
		return nil // with a namespace it would be reconciled as another one, at the same time as itself
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Target.Name}}}
}

// specOnly leaves out the changes of a patch's status, which are the engine's own.
var specOnly = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// unwrittenPatches reads patches from the API server and tells them nothing.
type unwrittenPatches struct{ cluster.Cluster }

// ListCached implements cluster.Cluster.
func (p unwrittenPatches) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	out, err := p.Cluster.ListCached(ctx, which)
	if _, none := withoutPatches(err); none {
		return nil, nil
	}
	return out, err
}

// ApplyStatus implements cluster.Cluster.
func (unwrittenPatches) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }
