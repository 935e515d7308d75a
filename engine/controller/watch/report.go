package watch

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/history"
	"operetta.dev/engine/patch"
	ctrl "sigs.k8s.io/controller-runtime"
)

// MaxReported is how many watches of a resource are reported.
const MaxReported = 64

// Watches returns the watches of the objects of a resource and of what it reads, in order: those of the kinds and
// namespaces of some objects, those that the resource waits for, and those of its inputs.
func (c *Cluster) Watches(req ctrl.Request, objects []cluster.Ref) []history.Watch {
	var out []history.Watch
	for _, ref := range objects {
		out = append(out, c.watchOf(ref))
	}
	c.mu.Lock()
	for _, w := range c.watches {
		out = append(out, w.awaited(req)...)
	}
	c.mu.Unlock()
	if c.inputs != nil {
		out = append(out, c.inputs.watches(req.NamespacedName)...)
	}
	slices.SortStableFunc(out, func(a, b history.Watch) int {
		return cmp.Or(-cmp.Compare(a.Of, b.Of), strings.Compare(a.Kind, b.Kind), strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Selector, b.Selector))
	})
	return slices.Compact(out)
}

// watchOf returns the watch of an object, by its kind in the cache of its namespace.
func (c *Cluster) watchOf(ref cluster.Ref) history.Watch {
	of, scope, found := c.caches.known(ref.Namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[of.Cache]; found && w != nil {
		if p := w.of(ref.GroupVersionKind); p != nil {
			return p.report(history.Object, scope)
		}
	}
	return history.Watch{Of: history.Object, APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Namespace: scope, State: history.NotWatched}
}

// known returns the cache of the objects of a namespace if there is one already, and the namespace that it is restricted to.
func (c *Caches) known(namespace string) (Cache, string, bool) {
	if c.primaryHas(namespace) {
		return c.primary, c.primaryNamespace(), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of, found := c.perNamespace[namespace]
	return of, namespace, found
}

// of returns the watch of a kind, or nil.
func (w *objectWatches) of(kind schema.GroupVersionKind) *pendingWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending[kind]
}

// awaited returns the watches that a resource waits for.
func (w *objectWatches) awaited(req ctrl.Request) []history.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []history.Watch
	for _, p := range w.pending {
		if p.awaitedBy(req) {
			out = append(out, p.report(history.Object, w.namespace))
		}
	}
	return out
}

func (w *pendingWatch) awaitedBy(req ctrl.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting[req]
}

// report returns what is known of a watch in a namespace, or in all for "".
func (w *pendingWatch) report(of history.Cause, namespace string) history.Watch {
	out := history.Watch{Of: of, APIVersion: w.kind.GroupVersion().String(), Kind: w.kind.Kind, Namespace: namespace, State: history.Watching}
	select {
	case <-w.synced:
	default:
		out.State = history.Pending
		if err := w.errors.last(w.kind); err != nil {
			out.Message = err.Error()
		}
	}
	return out
}

// watches returns the watches of what a resource reads.
func (i *Inputs) watches(owner types.NamespacedName) []history.Watch {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []history.Watch
	for key := range i.refers[owner].now {
		w := i.watched[key]
		if w == nil {
			continue
		}
		one := w.pending.report(history.Input, key.namespace)
		one.Name = key.name
		if one.Selector = key.selector; key.name != "" {
			one.Selector = ""
		}
		out = append(out, one)
	}
	return out
}

// WatchOf returns the watch of the Patches of a namespace, and false while there can be none.
func (p *Patches) WatchOf(reader cluster.Cluster, namespace string) (history.Watch, bool) {
	in := p.in(namespace)
	if in == nil {
		return history.Watch{}, false
	}
	return in.watchOf(partOf(reader, in.namespace))
}

func (p *patchesIn) watchOf(reader cluster.Cluster) (history.Watch, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := reader.(*patchReader)
	if !ok || p.state == patchesNotServed {
		return history.Watch{}, false
	}
	if r.watch == nil {
		return history.Watch{Of: history.Patch, APIVersion: patch.Kind.GroupVersion().String(), Kind: patch.Kind.Kind, Namespace: p.namespace, State: history.Pending}, true
	}
	return r.watch.report(history.Patch, p.namespace), true
}

// objectWatchesIn returns the watches of a controller in a cache.
func (c *Cluster) objectWatchesIn(of Cache, namespace string) *objectWatches {
	w := newObjectWatches(c.owner, of, c.controller)
	w.namespace = namespace
	c.watches[of.Cache] = w
	return w
}
