package testcase

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun/diff"
)

// A finalState is how everything is at the end.
type finalState struct {
	gone, ready bool
	objects     map[cluster.Ref]*unstructured.Unstructured
	// components are their states, and status the author's fields.
	components map[string]any
	status     map[string]any
	// created counts how often each object was created.
	created map[cluster.Ref]int
	// rendered are the objects that belong to components.
	rendered map[cluster.Ref]bool
	mask     *diff.Mask
}

// end returns how everything is.
func (p *playedTest) end(ctx context.Context) (finalState, error) {
	out, err := p.session.Preview(ctx)
	if err != nil {
		return finalState{}, err
	}
	world := p.session.World()
	e := finalState{
		gone: out.CR == nil, objects: map[cluster.Ref]*unstructured.Unstructured{}, components: map[string]any{}, status: out.Status,
		created: map[cluster.Ref]int{}, rendered: map[cluster.Ref]bool{}, mask: &diff.Mask{},
	}
	e.ready, _ = world.Ready(p.session.Resource())
	for _, c := range out.Components {
		e.components[c.Name] = string(c.State)
	}
	for _, o := range out.Objects() {
		if ref, known := p.session.Ref(o.Component, o.Name); known {
			e.rendered[ref.Identity()] = true
		}
	}
	for _, u := range world.Cluster.Objects() {
		if ref := cluster.RefOf(u).Identity(); ref != p.session.Resource().Identity() {
			e.objects[ref] = u
			e.mask.Learn(u)
		}
	}
	for _, change := range world.Cluster.Changes() {
		if change.Operation == cluster.Created {
			e.created[change.Ref.Identity()]++
		}
	}
	return e, nil
}

// differences returns how the end of a schedule differs from the one without any fault.
func (e finalState) differences(got finalState, s schedule) []string {
	var out []string
	add := func(format string, args ...any) {
		if len(out) < maxDifferences {
			out = append(out, got.mask.Text(fmt.Sprintf(format, args...)))
		}
	}
	if e.gone != got.gone || e.ready != got.ready {
		add("the custom resource is %s, and %s without that", got.state(), e.state())
	}
	for _, name := range slices.Sorted(maps.Keys(e.components)) {
		if e.components[name] != got.components[name] {
			add("component %s is %v, and %v without that", name, got.components[name], e.components[name])
		}
	}
	for _, ref := range refs(e.objects, got.objects) {
		want, is := e.objects[ref], got.objects[ref]
		switch {
		case is == nil && s.early > 0 && !e.rendered[ref]: // such as the Job of a hook of a spec that did not last
		case is == nil:
			add("%s does not exist", ref)
		case want == nil:
			add("%s is left", ref)
		default:
			for _, f := range got.mask.Fields(want, is) {
				add("%s ends otherwise: %s", ref, f)
			}
		}
		if s.early == 0 && !s.away && e.created[ref] != got.created[ref] {
			add("%s was created %d times, and %d times without that", ref, got.created[ref], e.created[ref])
		}
	}
	for _, f := range got.mask.Fields(&unstructured.Unstructured{Object: map[string]any{"of": e.status}}, &unstructured.Unstructured{Object: map[string]any{"of": got.status}}) {
		f.Path = strings.TrimPrefix(f.Path, "of.")
		add("status: %s", f)
	}
	return out
}

// state says how the custom resource is.
func (e finalState) state() string {
	switch {
	case e.gone:
		return "gone"
	case e.ready:
		return "ready"
	}
	return "not ready"
}

// refs returns the keys of two maps, sorted.
func refs(a, b map[cluster.Ref]*unstructured.Unstructured) []cluster.Ref {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), func(a, b cluster.Ref) int { return strings.Compare(a.String(), b.String()) })
}
