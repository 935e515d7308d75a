package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/patch"
)

// isPatch reports whether a kind is that of Patches.
func isPatch(kind schema.GroupVersionKind) bool { return kind.GroupKind() == patch.Kind.GroupKind() }

// A Dump is a snapshot without a cluster: what a Recorder has read, as far as its file holds it. It is safe for
// concurrent use.
type Dump struct {
	// Package and Kind are those that it was made for, and Taken when.
	Package string
	Kind    schema.GroupVersionKind
	Taken   time.Time

	resources []*unstructured.Unstructured
	objects   map[cluster.Ref]*unstructured.Unstructured
	// absent are the objects that did not exist, and lists the selections that were read.
	absent map[cluster.Ref]bool
	lists  map[string]bool
	// scopes are those of kinds; "" is for a kind that is not served.
	scopes map[schema.GroupKind]cluster.Scope

	mu sync.Mutex
	// unknown are the objects that were asked for and of which the dump says nothing.
	unknown map[schema.GroupKind]map[string]bool
}

var _ Snapshot = (*Dump)(nil)

// newDump returns an empty dump.
func newDump() *Dump {
	return &Dump{
		objects: map[cluster.Ref]*unstructured.Unstructured{}, absent: map[cluster.Ref]bool{}, lists: map[string]bool{},
		scopes: map[schema.GroupKind]cluster.Scope{}, unknown: map[schema.GroupKind]map[string]bool{},
	}
}

// Resources implements Snapshot. It errors for another kind than that of the dump.
func (d *Dump) Resources(_ context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if kind.GroupKind() != d.Kind.GroupKind() {
		return nil, fmt.Errorf("the dump is of the kind %s, and the package is for %s", d.Kind.GroupKind(), kind.GroupKind())
	}
	return d.resources, nil
}

// Get implements dryrun.Source.
func (d *Dump) Get(_ context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	id := ref.Identity()
	if u := d.objects[id]; u != nil {
		return u, nil
	}
	if !d.absent[id] {
		d.note(ref.GroupKind(), ref.String())
	}
	return nil, nil
}

// note remembers that the dump does not say something.
func (d *Dump) note(kind schema.GroupKind, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown[kind] == nil {
		d.unknown[kind] = map[string]bool{}
	}
	d.unknown[kind][what] = true
}

// List implements dryrun.Source.
func (d *Dump) List(_ context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	if !d.lists[dryrun.SelectionKey(s)] {
		d.note(s.Kind.GroupKind(), "a list of them")
	}
	return d.selected(s), nil
}

// selected returns the objects of a selection, by namespace and name.
func (d *Dump) selected(s cluster.Selection) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for ref, u := range d.objects {
		if ref.GroupKind() == s.Kind.GroupKind() && (s.Namespace == "" || s.Namespace == ref.Namespace) && (s.Name == "" || s.Name == ref.Name) &&
			labels.SelectorFromSet(s.Labels).Matches(labels.Set(u.GetLabels())) {
			out = append(out, u)
		}
	}
	sortObjects(out)
	return out
}

// sortObjects sorts objects by their identities.
func sortObjects(all []*unstructured.Unstructured) {
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(sortKey(a), sortKey(b)) })
}

// sortKey returns a text that is another one for each object.
func sortKey(u *unstructured.Unstructured) string {
	ref := cluster.RefOf(u)
	return strings.Join([]string{ref.Group, ref.Kind, ref.Namespace, ref.Name}, "|")
}

// Owned implements dryrun.Source.
func (d *Dump) Owned(_ context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for ref, u := range d.objects {
		if u.GetLabels()[label] == value && (namespace == "" || namespace == ref.Namespace) {
			found := &unstructured.Unstructured{Object: map[string]any{"metadata": u.DeepCopy().Object["metadata"]}}
			found.SetGroupVersionKind(u.GroupVersionKind())
			out = append(out, found)
		}
	}
	sortObjects(out)
	return out, nil
}

// Scope implements dryrun.Source.
func (d *Dump) Scope(_ context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	if scope := d.scopes[kind.GroupKind()]; scope != "" {
		return scope, nil
	}
	return "", &cluster.KindNotServedError{Kind: kind}
}

// Notes says what a plan has asked the dump for in vain.
func (d *Dump) Notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for kind, asked := range d.unknown {
		what := slices.Sorted(maps.Keys(asked))
		out = append(out, fmt.Sprintf("the dump does not say whether %s exists, so the plan takes it as absent%s", what[0], andMore(len(what)-1, "of the kind "+kind.Kind)))
	}
	slices.Sort(out)
	return out
}

// andMore says how many more there are.
func andMore(n int, of string) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf("; and so for %d more %s", n, of)
}

// A Recorder is a snapshot that remembers what it was asked. It is safe for concurrent use.
type Recorder struct {
	from Snapshot

	mu   sync.Mutex
	dump *Dump
}

var _ Snapshot = (*Recorder)(nil)

// NewRecorder returns a recorder of what is read from a snapshot for a package.
func NewRecorder(from Snapshot, pkg string, kind schema.GroupVersionKind, now time.Time) *Recorder {
	d := newDump()
	d.Package, d.Kind, d.Taken = pkg, kind, now
	return &Recorder{from: from, dump: d}
}

// Dump returns what was read so far.
func (r *Recorder) Dump() *Dump { return r.dump }

// record calls a function with the dump.
func (r *Recorder) record(write func(*Dump)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	write(r.dump)
}

// Resources implements Snapshot. It records the objects in the inventories of the resources as well, whether or
// not a package asks for them.
func (r *Recorder) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	all, err := r.from.Resources(ctx, kind)
	if err != nil {
		return nil, err
	}
	r.record(func(d *Dump) { d.resources = all })
	for _, u := range all {
		for _, g := range inventoryOf(u) {
			for _, e := range g.Objects {
				if _, err := r.Get(ctx, e.Ref(u.GetNamespace())); err != nil && !cluster.IsKindNotServed(err) {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// Get implements dryrun.Source.
func (r *Recorder) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, err := r.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	u, err := r.from.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	r.record(func(d *Dump) {
		if u == nil {
			d.absent[ref.Identity()] = true
			return
		}
		d.objects[ref.Identity()] = u
	})
	return u, nil
}

// List implements dryrun.Source.
func (r *Recorder) List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := r.from.List(ctx, s)
	if err != nil {
		return nil, err
	}
	r.record(func(d *Dump) {
		d.lists[dryrun.SelectionKey(s)] = true
		for _, u := range all {
			d.objects[cluster.RefOf(u).Identity()] = u
		}
	})
	return all, nil
}

// Owned implements dryrun.Source. It records the objects, which only come with their metadata.
func (r *Recorder) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	all, err := r.from.Owned(ctx, namespace, label, value)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if _, err := r.Get(ctx, cluster.RefOf(u)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Scope implements dryrun.Source.
func (r *Recorder) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	scope, err := r.from.Scope(ctx, kind)
	if err == nil || cluster.IsKindNotServed(err) {
		r.record(func(d *Dump) { d.scopes[kind.GroupKind()] = scope })
	}
	return scope, err
}

// Len returns how many objects a dump has.
func (d *Dump) Len() int { return len(d.resources) + len(d.objects) }
