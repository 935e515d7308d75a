package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
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
	// Namespaces are those whose resources were read; nil is all.
	Namespaces object.Namespaces

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
	// unasked are the kinds of which the dump does not say whether they are served.
	unasked map[schema.GroupKind]bool
	// unproven are the objects that an inventory names and that do not say so themselves.
	// proven are those that do.
	unproven, proven map[cluster.Ref]bool
}

var _ Snapshot = (*Dump)(nil)

// newDump returns an empty dump.
func newDump() *Dump {
	return &Dump{
		objects: map[cluster.Ref]*unstructured.Unstructured{}, absent: map[cluster.Ref]bool{}, lists: map[string]bool{},
		scopes: map[schema.GroupKind]cluster.Scope{}, unknown: map[schema.GroupKind]map[string]bool{},
		unasked: map[schema.GroupKind]bool{}, unproven: map[cluster.Ref]bool{}, proven: map[cluster.Ref]bool{},
	}
}

// NewDump returns a dump for the resources of a package that has seen nothing yet.
func NewDump(pkg string, kind schema.GroupVersionKind, now time.Time) *Dump {
	d := newDump()
	d.Package, d.Kind, d.Taken = pkg, kind, now
	return d
}

// ObserveResources notes the custom resources that there are.
func (d *Dump) ObserveResources(all ...*unstructured.Unstructured) { d.resources = all }

// Observe notes an object, or nil for one that does not exist.
func (d *Dump) Observe(ref cluster.Ref, u *unstructured.Unstructured) {
	if u == nil {
		d.absent[ref.Identity()] = true
		return
	}
	d.objects[ref.Identity()] = u
}

// ObserveList notes the objects of a selection.
func (d *Dump) ObserveList(s cluster.Selection, all []*unstructured.Unstructured) {
	d.lists[dryrun.SelectionKey(s)] = true
	for _, u := range all {
		d.objects[cluster.RefOf(u).Identity()] = u
	}
}

// ObserveScope notes where the objects of a kind live, or "" for a kind that is not served.
func (d *Dump) ObserveScope(kind schema.GroupKind, scope cluster.Scope) { d.scopes[kind] = scope }

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
		d.note(s.Kind.GroupKind(), described(s))
	}
	return d.selected(s), nil
}

// described returns a selection in words.
func described(s cluster.Selection) string {
	if s.Name != "" {
		return cluster.Ref{GroupVersionKind: s.Kind, Namespace: s.Namespace, Name: s.Name}.String()
	}
	out := "any " + s.Kind.Kind
	if s.Namespace != "" {
		out += " in namespace " + s.Namespace
	}
	if len(s.Labels) > 0 {
		out += " with labels " + labels.SelectorFromSet(s.Labels).String()
	}
	return out
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
	scope, asked := d.scopes[kind.GroupKind()]
	if scope != "" {
		return scope, nil
	}
	if !asked {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unasked[kind.GroupKind()] = true
	}
	return "", &cluster.KindNotServedError{Kind: kind}
}

// Notes says what a plan has asked the dump for in vain.
func (d *Dump) Notes() []string {
	var out []string
	if !d.Namespaces.All() {
		out = append(out, "the dump has the resources in "+d.where()+" alone")
	}
	return append(out, d.Missing("the dump", "the plan")...)
}

// Missing says what somebody has asked the dump for in vain, sorted, in words that name both.
func (d *Dump) Missing(dump, somebody string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for kind := range d.unasked {
		out = append(out, fmt.Sprintf("%s does not say whether the cluster serves %s, so %s takes it as not served", dump, kind, somebody))
	}
	for kind, asked := range d.unknown {
		what := slices.Sorted(maps.Keys(asked))
		text := fmt.Sprintf("%s does not say whether %s exists, so %s takes it as absent", dump, what[0], somebody)
		if more := len(what) - 1; more > 0 {
			text += fmt.Sprintf("; and so for %d more of the kind %s", more, kind.Kind)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
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
	return &Recorder{from: from, dump: NewDump(pkg, kind, now)}
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
	r.record(func(d *Dump) { d.ObserveResources(all...) })
	for _, u := range all {
		for _, e := range inventoryOf(u).Entries() {
			if err := r.owned(ctx, u, e.Ref(u.GetNamespace())); err != nil && !unreadable(err) {
				return nil, err
			}
		}
	}
	return all, nil
}

// owned records an object that the inventory of a resource names. Whoever may write the status can name any object
// there, so one that does not prove its owner itself is recorded by its name alone.
func (r *Recorder) owned(ctx context.Context, owner *unstructured.Unstructured, ref cluster.Ref) error {
	u, err := r.Get(ctx, ref)
	if err != nil || u == nil {
		return err
	}
	id := ref.Identity()
	r.record(func(d *Dump) {
		if proves(u, owner) {
			delete(d.unproven, id)
			d.proven[id], d.objects[id] = true, u
			return
		}
		if d.proven[id] {
			return // another resource owns it
		}
		d.unproven[id] = true
		d.objects[id] = withoutContent(u)
	})
	return nil
}

// proves reports whether an object says itself that a resource owns it.
func proves(u, owner *unstructured.Unstructured) bool {
	for _, r := range u.GetOwnerReferences() {
		if r.UID != "" && r.UID == owner.GetUID() {
			return true
		}
	}
	return u.GetLabels()[ownership.OwnerLabel] == ownership.Owner{Ref: cluster.RefOf(owner), UID: owner.GetUID()}.Label()
}

// withoutContent returns an object with nothing but what identifies it.
func withoutContent(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	meta := map[string]any{}
	all, _ := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		if v, has := all[field]; has {
			meta[field] = v
		}
	}
	out.Object["metadata"] = meta
	return out
}

// unreadable reports whether nobody, or not this user, can read an object. Such an object is unknown, and says
// nothing about others.
func unreadable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || cluster.IsKindNotServed(err)
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
		if !d.unproven[ref.Identity()] {
			d.Observe(ref, u)
		}
	})
	return u, nil
}

// List implements dryrun.Source.
func (r *Recorder) List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := r.from.List(ctx, s)
	if err != nil {
		return nil, err
	}
	r.record(func(d *Dump) { d.ObserveList(s, all) })
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
		r.record(func(d *Dump) { d.ObserveScope(kind.GroupKind(), scope) })
	}
	return scope, err
}

// Covers errors if a dump says nothing of the resources in one of some namespaces.
func (d *Dump) Covers(namespaces object.Namespaces) error {
	for _, namespace := range namespaces {
		if !d.Namespaces.Has(namespace) {
			return fmt.Errorf("the dump has the resources in %s alone, and none in %s", d.where(), namespace)
		}
	}
	return nil
}

// where names the namespaces of a dump.
func (d *Dump) where() string {
	if only := d.Namespaces.Only(); only != "" {
		return "the namespace " + only
	}
	return "the namespaces " + strings.Join(d.Namespaces, ", ")
}

// Len returns how many objects a dump has.
func (d *Dump) Len() int { return len(d.resources) + len(d.objects) }
