package plan

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
)

// A Live is the snapshot of a cluster that it reads: the objects in the inventories of resources by lists in
// pages, and everything else once when it is asked for. It is safe for concurrent use.
type Live struct {
	from *cluster.Live
	// namespaces are those that are read for resources and their objects.
	namespaces object.Namespaces

	mu sync.Mutex
	// objects are those that were read; nil stands for one that does not exist.
	objects map[cluster.Ref]*unstructured.Unstructured
}

var _ Snapshot = (*Live)(nil)

// NewLive returns the snapshot of a cluster, of the resources in some namespaces.
func NewLive(from *cluster.Live, namespaces object.Namespaces) *Live {
	return &Live{from: from, namespaces: namespaces, objects: map[cluster.Ref]*unstructured.Unstructured{}}
}

// Resources implements Snapshot. It reads the objects in the inventories of the resources as well.
func (l *Live) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	found := map[cluster.Ref]*unstructured.Unstructured{}
	for _, namespace := range l.namespaces.Lists() {
		err := l.from.ListPages(ctx, cluster.Selection{Kind: kind, Namespace: namespace}, "", func(page []*unstructured.Unstructured) error {
			for _, u := range page {
				found[cluster.RefOf(u)] = u
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(cluster.RefOf(a).String(), cluster.RefOf(b).String())
	})
	return out, l.readInventories(ctx, out)
}

// readInventories reads the objects that resources own, by lists of each of their kinds. What somebody may not
// list is read one by one later.
func (l *Live) readInventories(ctx context.Context, resources []*unstructured.Unstructured) error {
	places := l.placesOf(resources)
	for at := range places {
		if places[place{at.kind, ""}] && at.namespace != "" {
			continue
		}
		err := l.from.ListPages(ctx, cluster.Selection{Kind: at.kind, Namespace: at.namespace}, ownership.OwnerLabel, func(page []*unstructured.Unstructured) error {
			for _, u := range page {
				l.keep(cluster.RefOf(u), u)
			}
			return ctx.Err()
		})
		if err != nil && !unreadable(err) {
			return err
		}
	}
	return nil
}

// A place is where objects of a kind are; the namespace "" stands for all.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

// placesOf returns where the objects are that resources own.
func (l *Live) placesOf(resources []*unstructured.Unstructured) map[place]bool {
	out := map[place]bool{}
	for _, u := range resources {
		for _, e := range inventoryOf(u).Entries() {
			at := place{kind: e.Ref("").GroupVersionKind}
			switch {
			case e.ClusterScoped || e.Namespace != "":
				at.namespace = e.Namespace
			case !l.namespaces.All():
				at.namespace = u.GetNamespace()
			}
			out[at] = true
		}
	}
	return out
}

// keep remembers what was read, and returns it.
func (l *Live) keep(ref cluster.Ref, u *unstructured.Unstructured) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects[ref.Identity()] = u
	return u
}

// Get implements dryrun.Source.
func (l *Live) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	l.mu.Lock()
	u, known := l.objects[ref.Identity()]
	l.mu.Unlock()
	if known {
		return u, nil
	}
	u, err := l.from.GetLive(ctx, ref)
	if err != nil {
		return nil, err
	}
	return l.keep(ref, u), nil
}

// List implements dryrun.Source. There is nothing in a list of Patches that nobody may read, or of which the
// cluster has no definition, as for an operator.
func (l *Live) List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[cluster.Ref]bool{}
	err := l.from.ListPages(ctx, s, "", func(page []*unstructured.Unstructured) error {
		for _, u := range page {
			if ref := cluster.RefOf(u); !seen[ref] {
				seen[ref] = true
				out = append(out, u)
			}
		}
		return ctx.Err()
	})
	if isPatch(s.Kind) && (apierrors.IsForbidden(err) || cluster.IsKindNotServed(err)) {
		return nil, nil
	}
	return out, err
}

// Owned implements dryrun.Source.
func (l *Live) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	return l.from.Owned(ctx, namespace, label, value)
}

// Scope implements dryrun.Source.
func (l *Live) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	return l.from.Scope(ctx, kind)
}
