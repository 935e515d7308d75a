package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Patches watches Patches for all controllers of a manager, in each namespace by itself. While the API server does not
// serve them, or the operator may not read those of a namespace, there are none.
//
// Readers wait until that is known: a rollout without the patches would undo what they have changed.
type Patches struct {
	namespaces object.Namespaces
	parts      map[string]*patchesIn
}

// NewPatches returns the watches of Patches in some namespaces. They run when the manager runs.
func NewPatches(mgr Connection, direct client.Client, namespaces object.Namespaces, log logr.Logger) (*Patches, error) {
	out := &Patches{namespaces: namespaces, parts: map[string]*patchesIn{}}
	for _, namespace := range namespaces.Lists() {
		p, err := newPatchesIn(mgr, direct, namespace, log)
		if err != nil {
			return nil, err
		}
		out.parts[namespace] = p
	}
	return out, nil
}

// Reader returns the cluster of Patches as a controller reads it. A handler enqueues what the Patches
// of events are about. If it turns out later whether the operator may read Patches, changed is called, unless it is nil.
func (p *Patches) Reader(c controller.Controller, h handler.EventHandler, which predicate.Predicate, changed func()) (cluster.Cluster, error) {
	all := &routed{by: map[string]cluster.Cluster{}}
	for _, namespace := range p.namespaces.Lists() {
		reader, err := p.parts[namespace].reader(c, h, which, changed)
		if err != nil {
			return nil, err
		}
		all.by[namespace] = reader
		if all.Cluster == nil {
			all.Cluster = reader
		}
	}
	if len(p.parts) == 1 {
		return all.Cluster, nil
	}
	return all, nil
}

// Remove forgets a reader, whose controller has ended.
func (p *Patches) Remove(reader cluster.Cluster) {
	for namespace, part := range p.parts {
		part.remove(partOf(reader, namespace))
	}
}

// partOf returns what a reader is in one namespace.
func partOf(reader cluster.Cluster, namespace string) cluster.Cluster {
	if all, several := reader.(*routed); several {
		return all.by[namespace]
	}
	return reader
}

// Unread returns why the operator may not read the Patches of a namespace, or "" if it may, or if that is not known.
func (p *Patches) Unread(namespace string) string {
	part := p.in(namespace)
	if part == nil {
		return ""
	}
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.forbidden
}

// in returns the part that has the Patches of a namespace, or nil.
func (p *Patches) in(namespace string) *patchesIn {
	if p.namespaces.All() {
		return p.parts[""]
	}
	return p.parts[namespace]
}

// patchesIn has the Patches of one namespace, or of all.
type patchesIn struct {
	// cache has nothing but Patches, so that a list of them that fails blocks nothing else.
	cache  Cache
	direct client.Client
	// namespace is where Patches are looked for; "" is everywhere.
	namespace string
	log       logr.Logger

	// asking is the question whether there can be Patches: one asks, and all who want to know it meanwhile wait for the answer.
	asking singleflight.Group

	mu      sync.Mutex
	state   availability
	readers []*patchReader
	// forbidden is why the operator may not read them, or "".
	forbidden string
}

// availability says whether there can be Patches.
type availability string

// The values of availability; "" is unknown.
const (
	patchesServed    availability = "Served"
	patchesNotServed availability = "NotServed"
	// patchesForbidden: the operator may not list them.
	patchesForbidden availability = "Forbidden"
)

func newPatchesIn(mgr Connection, direct client.Client, namespace string, log logr.Logger) (*patchesIn, error) {
	p := &patchesIn{direct: direct, namespace: namespace, log: log}
	var err error
	if p.cache, err = NewCache(mgr, namespace, cache.Options{SyncPeriod: new(Resync), DefaultTransform: trimPatch}); err != nil {
		return nil, err
	}
	if err := mgr.Add(EveryProcess(p.cache.Start)); err != nil {
		return nil, err
	}
	return p, mgr.Add(EveryProcess(p.Start))
}

// trimPatch is the transform of the cache: a user who can write a Patch could fill the memory otherwise.
func trimPatch(o any) (any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		patch.Trim(u)
	}
	return o, nil
}

// Start implements manager.Runnable: it asks the API server until there can be Patches, soon again at first,
// since the process may install their definition only once it leads.
func (p *patchesIn) Start(ctx context.Context) error {
	again := patchesRetry
	for state, err := p.known(ctx); state != patchesServed; state, err = p.ask(ctx) {
		if err != nil {
			again = patchesRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
		again = min(2*again, patchesInterval)
	}
	return nil
}

// known returns whether there can be Patches, and asks the API server if that is not known yet. No caller waits longer than the context, or
// for more than one answer.
func (p *patchesIn) known(ctx context.Context) (availability, error) {
	p.mu.Lock()
	state := p.state
	p.mu.Unlock()
	if state != "" {
		return state, nil
	}
	answer := p.asking.DoChan("", func() (any, error) {
		return p.ask(context.WithoutCancel(ctx)) // the others want to know it, too
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answer:
		state, _ = got.Val.(availability)
		return state, got.Err
	}
}

// ask asks the API server whether there can be Patches, and starts the watches if there can.
func (p *patchesIn) ask(ctx context.Context) (availability, error) {
	ctx, cancel := context.WithTimeout(ctx, SyncTimeout)
	defer cancel()
	_, err := cluster.List(ctx, p.direct, cluster.Selection{Kind: patch.Kind, Namespace: p.namespace, Limit: 1})
	found, why := availabilityOf(err)
	if found == "" {
		return "", err
	}
	state, tell, err := p.settle(found, why)
	for _, changed := range tell {
		changed()
	}
	return state, err
}

// settle notes an answer, and starts the watches if there can be Patches. It returns whom to tell that the permission has come or gone.
func (p *patchesIn) settle(found availability, why string) (availability, []func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.state
	switch {
	case before == patchesServed || before == found: // readers go on with what they have seen
		return before, nil, nil
	case found != patchesServed:
		p.log.Info("patches are not looked at: " + why)
	default:
		for _, r := range p.readers {
			if err := r.start(); err != nil {
				return "", nil, err
			}
		}
		if before != "" {
			p.log.Info("patches are looked at from now on")
		}
	}
	p.state, p.forbidden = found, ""
	if found == patchesForbidden {
		p.forbidden = why
	}
	if before == "" || before != patchesForbidden && found != patchesForbidden {
		return found, nil, nil // who reads them waits for the first answer
	}
	return found, p.told(), nil
}

// told returns the functions of the readers that are told of a permission.
func (p *patchesIn) told() []func() {
	var out []func()
	for _, r := range p.readers {
		if r.changed != nil {
			out = append(out, r.changed)
		}
	}
	return out
}

// availabilityOf returns what the error of a list says, and why there are no Patches for this operator. It is "" if that stays unknown.
func availabilityOf(err error) (found availability, why string) {
	switch {
	case err == nil:
		return patchesServed, ""
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return patchesNotServed, "the cluster does not serve them"
	case apierrors.IsForbidden(err):
		return patchesForbidden, "the operator may not read them: " + err.Error()
	}
	return "", ""
}

// A patchReader reads Patches for one controller.
type patchReader struct {
	cluster.Cluster // of the cache of Patches
	*patchesIn

	controller controller.Controller
	handler    handler.EventHandler
	predicate  predicate.Predicate
	// changed is called when the permission comes or goes; it may be nil.
	changed func()
	// watch is nil until there can be Patches.
	watch *pendingWatch
}

var _ cluster.Cluster = (*patchReader)(nil)

// reader is Reader in one namespace.
func (p *patchesIn) reader(c controller.Controller, h handler.EventHandler, which predicate.Predicate, changed func()) (cluster.Cluster, error) {
	r := &patchReader{Cluster: &cluster.Live{Client: p.cache.Client, Direct: p.direct}, patchesIn: p, controller: c, handler: h, predicate: which, changed: changed}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers = append(p.readers, r)
	if p.state != patchesServed {
		return r, nil // ask starts it
	}
	return r, r.start()
}

// remove is Remove in one namespace.
func (p *patchesIn) remove(reader cluster.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers = slices.DeleteFunc(p.readers, func(r *patchReader) bool { return cluster.Cluster(r) == reader })
}

// start starts the watch of a reader, once.
func (r *patchReader) start() error {
	if r.watch != nil {
		return nil
	}
	w, err := startWatch(context.Background(), r.cache, patch.Kind) // it waits for nothing, so there is nothing to cancel
	if err != nil {
		return err
	}
	r.watch = w
	// A controller that starts takes no watch until it has started, and other readers must not wait for
	// that.
	go func() {
		if err := r.controller.Watch(w.source(r.handler, r.predicate)); err != nil {
			r.log.Error(err, "changes of patches cannot be watched")
		}
	}()
	return nil
}

// ListCached implements cluster.Cluster.
func (r *patchReader) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	if state, err := r.known(ctx); err != nil || state != patchesServed {
		return nil, err
	}
	r.mu.Lock()
	w := r.watch
	r.mu.Unlock()
	if err := w.await(ctx); err != nil {
		return nil, err
	}
	return cluster.List(ctx, r.cache.Client, which, client.UnsafeDisableDeepCopy)
}
