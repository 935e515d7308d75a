package shadow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

// A place is where a kind is watched; the namespace "" is all, or none for a kind that has none.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// A tracker follows the metadata of objects, and keeps none: the index does, of those that concern somebody.
type tracker struct {
	client metadata.Interface
	mapper meta.RESTMapper
	index  *index
	// namespaces are those of resources.
	namespaces object.Namespaces
	// concerns is called with the resources that are to be compared again.
	concerns func([]cluster.Ref)
	// note is called with what is not seen, and why; nil for a place that is seen again.
	note func(where place, why error)

	mu sync.Mutex
	// watches are the places that are watched, and whether each has been listed or cannot be.
	watches map[place]watchState
}

// A watchState says how far a watch is.
type watchState string

const (
	starting watchState = "starting"
	synced   watchState = "synced"
	refused  watchState = "refused"
)

// at returns where objects of a kind are watched.
func (t *tracker) at(kind schema.GroupVersionKind, namespace string) place {
	if t.namespaces.All() {
		namespace = ""
	}
	return place{kind, namespace}
}

// follow watches a place, if nobody does. It returns at once.
func (t *tracker) follow(ctx context.Context, at place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(at) != "" {
		return
	}
	t.watches[at] = starting
	go t.watch(ctx, at)
}

// find returns how far the watch that covers a place is, or "". The caller holds the lock.
func (t *tracker) find(at place) watchState {
	for known, state := range t.watches {
		if known.kind.GroupKind() == at.kind.GroupKind() && (known.namespace == "" || known.namespace == at.namespace) {
			return state
		}
	}
	return ""
}

// followReads watches what a comparison has read.
func (t *tracker) followReads(ctx context.Context, r *reads) {
	for ref := range r.objects {
		t.follow(ctx, t.at(ref.GroupVersionKind, ref.Namespace))
	}
	for _, s := range r.selections {
		t.follow(ctx, t.at(s.Kind, s.Namespace))
	}
}

// state returns how far the watch that covers a place is, or "".
func (t *tracker) state(at place) watchState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(at)
}

// set sets how far the watch of a place is.
func (t *tracker) set(at place, to watchState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watches[at] = to
}

// isSettled reports whether all watches have been listed, or cannot be.
func (t *tracker) isSettled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.watches {
		if s == starting {
			return false
		}
	}
	return true
}

// watch follows a place until the context ends. While that is not allowed, whoever has read something there is
// compared again from time to time.
func (t *tracker) watch(ctx context.Context, at place) {
	ctx = klog.NewContext(ctx, logr.Discard()) // what is not seen is noted
	var polled time.Time
	for ctx.Err() == nil {
		began := time.Now()
		err := t.run(ctx, at)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.set(at, refused)
			t.note(at, err)
		}
		if err != nil && !cluster.IsKindNotServed(err) && time.Since(polled) > pollInterval {
			polled = time.Now()
			t.concerns(t.index.readersOf(at.kind.GroupKind(), at.namespace))
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(0, watchRetry-time.Since(began))): // a watch that ends by itself is followed by the next one at once
		}
	}
}

// run lists and watches a place until the watch ends.
func (t *tracker) run(ctx context.Context, at place) error {
	from, err := t.resource(at)
	if err != nil {
		return err
	}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return from.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.Watch(ctx, o)
			if apierrors.IsForbidden(err) {
				err = &watchForbiddenError{err}
			}
			return w, err
		},
	}
	r := cache.NewReflector(cache.ToListWatcherWithWatchListSemantics(lists, t.client), &metav1.PartialObjectMetadata{}, &sink{t, at}, 0)
	return r.ListAndWatchWithContext(ctx)
}

// watchForbiddenError says that a kind may be listed and not watched.
type watchForbiddenError struct{ error }

// Unwrap returns the cause.
func (e *watchForbiddenError) Unwrap() error { return e.error }

// resource returns the client of a place.
func (t *tracker) resource(at place) (metadata.ResourceInterface, error) {
	mapping, err := t.mapper.RESTMapping(at.kind.GroupKind(), at.kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, &cluster.KindNotServedError{Kind: at.kind}
	}
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", at.kind.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return t.client.Resource(mapping.Resource), nil
	}
	return t.client.Resource(mapping.Resource).Namespace(at.namespace), nil
}

// whyUnseen says why a place is not watched.
func whyUnseen(at place, err error) string {
	verb := "list"
	if _, watching := errors.AsType[*watchForbiddenError](err); watching {
		verb = "watch"
	}
	if missing, ok := errors.AsType[*PermissionError](permissionOr(err, verb, at.namespace)); ok {
		return missing.Error()
	}
	return err.Error()
}

// sink takes the events of a place in.
type sink struct {
	*tracker

	at place
}

// Add implements cache.ReflectorStore.
func (s *sink) Add(o any) error { return s.event(o, exists) }

// Update implements cache.ReflectorStore.
func (s *sink) Update(o any) error { return s.event(o, exists) }

// Delete implements cache.ReflectorStore.
func (s *sink) Delete(o any) error { return s.event(o, gone) }

// Resync implements cache.ReflectorStore.
func (*sink) Resync() error { return nil }

// event takes one event in.
func (s *sink) event(o any, what event) error {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("an event of %s has a %T", s.at.kind.Kind, o)
	}
	s.concerns(s.index.observe(s.at.kind, m, what))
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *sink) Replace(list []any, _ string) error {
	there := map[cluster.Ref]bool{}
	for _, o := range list {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			there[cluster.Ref{GroupVersionKind: s.at.kind, Namespace: m.Namespace, Name: m.Name}.Identity()] = true
		}
		if err := s.event(o, exists); err != nil {
			return err
		}
	}
	s.missing(s.at, there)
	if s.state(s.at) == refused { // a kind may be served now that was not
		s.concerns(s.index.readersOf(s.at.kind.GroupKind(), s.at.namespace))
	}
	s.set(s.at, synced)
	s.note(s.at, nil)
	return nil
}

// missing takes in that everything else that is known of a place is gone.
func (t *tracker) missing(at place, there map[cluster.Ref]bool) {
	for _, ref := range t.index.known(at.kind.GroupKind(), at.namespace) {
		if !there[ref] {
			t.concerns(t.index.observe(at.kind, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}, gone))
		}
	}
}

// unowned are kinds whose objects are many, and belong to no custom resource.
var unowned = []schema.GroupKind{{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, {Group: "coordination.k8s.io", Kind: "Lease"}}

// scan lists the kinds that nobody watches, page by page, for objects that belong to resources. It returns which
// of them may not be listed.
func (t *tracker) scan(ctx context.Context, kinds []schema.GroupVersionKind) (notAllowed []string, err error) {
	for _, kind := range kinds {
		for _, at := range t.placesOf(kind) {
			err := t.list(ctx, at)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case apierrors.IsForbidden(err) && len(t.namespaces) > 1:
				notAllowed = append(notAllowed, t.pluralOf(kind)+" in namespace "+at.namespace)
			case apierrors.IsForbidden(err):
				notAllowed = append(notAllowed, t.pluralOf(kind))
			case cluster.IsKindNotServed(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			case err != nil:
				return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
			}
		}
	}
	slices.SortFunc(notAllowed, strings.Compare)
	return notAllowed, nil
}

// placesOf returns where objects of a kind have to be looked for because nobody watches them.
func (t *tracker) placesOf(kind schema.GroupVersionKind) []place {
	if slices.Contains(unowned, kind.GroupKind()) {
		return nil
	}
	in := t.namespaces.Lists()
	if mapping, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		in = []string{""}
	}
	var out []place
	for _, namespace := range in {
		if at := (place{kind, namespace}); t.state(at) != synced {
			out = append(out, at)
		}
	}
	return out
}

// pluralOf returns the plural name of a kind, with its group.
func (t *tracker) pluralOf(kind schema.GroupVersionKind) string {
	mapping, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return strings.ToLower(kind.GroupKind().String())
	}
	p := rbac.Permission{Verb: "list", Group: mapping.Resource.Group, Resource: mapping.Resource.Resource}
	return strings.TrimPrefix(p.String(), "list ")
}

// scanPage is how many objects one request of a scan returns.
const scanPage = 500

// list lists a place once.
func (t *tracker) list(ctx context.Context, at place) error {
	from, err := t.resource(at)
	if err != nil {
		return err
	}
	there := map[cluster.Ref]bool{}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return from.List(ctx, o) })
	pages.PageSize, pages.PageBufferSize = scanPage, 1
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		m, ok := o.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a list of %s has a %T", at.kind.Kind, o)
		}
		there[cluster.Ref{GroupVersionKind: at.kind, Namespace: m.Namespace, Name: m.Name}.Identity()] = true
		t.concerns(t.index.observe(at.kind, m, exists))
		return nil
	})
	if err != nil {
		return err
	}
	t.missing(at, there)
	if t.index.hasOwned(at.kind.GroupKind()) { // who removes or releases such an object wants to see that
		t.follow(ctx, at)
	}
	return nil
}
