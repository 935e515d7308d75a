package dryrun

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

// A resource is the custom resource of an operator.
type resource struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// due are the resources that are to be reconciled, and when. The zero time is at once.
type due map[resource]time.Time

// now returns the resources of a kind whose time has come, sorted.
func (d due) now(kind schema.GroupKind, now time.Time) []resource {
	var out []resource
	for r, at := range d {
		if r.kind == kind && !at.After(now) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b resource) int { return strings.Compare(a.key.String(), b.key.String()) })
	return out
}

// next is when the first resource is due, if any is.
func (d due) next() (time.Time, bool) {
	var first time.Time
	found := false
	for _, at := range d {
		if !found || at.Before(first) {
			first, found = at, true
		}
	}
	return first, found
}

// wake makes every resource due that something has happened to since, as the watches of
// an operator do. One that has written something itself looks at it once more, too.
func (w *World) wake(events []cluster.Event) {
	for _, e := range events {
		for _, o := range w.operators {
			for _, key := range o.concerned(e) {
				w.due[resource{o.kind.GroupKind(), key}] = time.Time{}
			}
		}
	}
}

// concerned returns the resources of an operator that an event is about.
func (o operator) concerned(e cluster.Event) []types.NamespacedName {
	kind := o.kind.GroupKind()
	switch {
	case e.Ref.GroupKind() == kind && e.Verb == cluster.Updated && !reconcile.SpecOrMetadataChanged(e.Before, e.Object):
		return nil
	case e.Ref.GroupKind() == kind:
		return append(owners(kind, e), types.NamespacedName{Namespace: e.Ref.Namespace, Name: e.Ref.Name})
	case e.Ref.GroupKind() == patch.Kind.GroupKind():
		return targets(kind, e)
	}
	return append(owners(kind, e), o.readers(e)...)
}

// sides are what an object was before an event and what it is afterwards.
func sides(e cluster.Event) []*unstructured.Unstructured {
	return slices.DeleteFunc([]*unstructured.Unstructured{e.Before, e.Object}, func(u *unstructured.Unstructured) bool { return u == nil })
}

// owners returns whose an object is, or was.
func owners(kind schema.GroupKind, e cluster.Event) []types.NamespacedName {
	var out []types.NamespacedName
	for _, u := range sides(e) {
		if of, key, ok := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation]); ok && of == kind {
			out = append(out, key)
		}
	}
	return out
}

// targets returns what a patch is about, or was. Its status is the engine's own.
func targets(kind schema.GroupKind, e cluster.Event) []types.NamespacedName {
	if e.Verb == cluster.Updated && !reconcile.SpecOrMetadataChanged(e.Before, e.Object) {
		return nil
	}
	var out []types.NamespacedName
	for _, u := range sides(e) {
		if p := patch.Parse(u); p.Target.GroupKind == kind {
			out = append(out, types.NamespacedName{Namespace: p.Namespace, Name: p.Target.Name})
		}
	}
	return out
}

// readers returns the resources that read an object.
func (o operator) readers(e cluster.Event) []types.NamespacedName {
	var out []types.NamespacedName
	for owner, inputs := range o.reads {
		if slices.ContainsFunc(inputs, func(in program.Input) bool { return reads(in, e) }) {
			out = append(out, owner)
		}
	}
	return out
}

// reads reports whether an input is, or was, the object of an event.
func reads(in program.Input, e cluster.Event) bool {
	if in.Kind.GroupKind() != e.Ref.GroupKind() || in.Namespace != e.Ref.Namespace {
		return false
	}
	if in.Object != "" {
		return in.Object == e.Ref.Name
	}
	return slices.ContainsFunc(sides(e), func(u *unstructured.Unstructured) bool {
		return labels.SelectorFromSet(in.Selector).Matches(labels.Set(u.GetLabels()))
	})
}
