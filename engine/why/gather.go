package why

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

// A Reader reads the objects of a cluster, and never writes one.
type Reader interface {
	// GetLive returns an object, or nil.
	GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error)
	// ListLive returns the objects of a selection.
	ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error)
	// Scope says whether the objects of a kind have a namespace.
	Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error)
}

const (
	// maxRounds bounds how often inputs are read whose names come from other inputs.
	maxRounds = 5
	// maxSelected bounds how many objects of an input with a selector are read.
	maxSelected = 500
)

// Gather reads what the evaluation of a custom resource needs: the objects of its inventory and the inputs of
// the package. What cannot be read is left out, and noted.
func Gather(ctx context.Context, from Reader, p *program.Program, cr *unstructured.Unstructured) (in render.Input, notes []string, err error) {
	g := gathering{from: from, in: render.Input{CR: cr.Object, Namespace: cr.GetNamespace()}, read: map[string]bool{}}
	inventory, err := ownership.InventoryOf(cr)
	if err != nil {
		g.notes = append(g.notes, "the inventory in the status cannot be read: "+err.Error())
	}
	for _, group := range inventory {
		for _, e := range group.Objects {
			g.get(ctx, e.Ref(cr.GetNamespace()))
		}
	}
	for range maxRounds {
		out, err := render.Render(ctx, p, g.in)
		if err != nil {
			return g.in, g.notes, err
		}
		if !g.inputs(ctx, out.Rollout.Inputs, cr.GetNamespace()) {
			break
		}
	}
	return g.in, g.notes, ctx.Err()
}

// gathering reads the objects of one evaluation.
type gathering struct {
	from  Reader
	in    render.Input
	notes []string
	read  map[string]bool
}

// inputs reads the inputs whose identity is known now, and reports whether any is new.
func (g *gathering) inputs(ctx context.Context, inputs []program.Input, namespace string) bool {
	again := false
	for _, i := range inputs {
		if i.Missing != "" {
			continue
		}
		ref := cluster.Ref{GroupVersionKind: i.Kind, Namespace: i.Namespace, Name: i.Object}
		scope, err := g.from.Scope(ctx, i.Kind)
		switch {
		case err != nil:
			g.note(ref, err)
			continue
		case scope == cluster.ClusterScoped:
			ref.Namespace = ""
		case ref.Namespace == "":
			ref.Namespace = namespace
		}
		if i.Object != "" {
			again = g.get(ctx, ref) || again
			continue
		}
		again = g.list(ctx, cluster.Selection{Kind: i.Kind, Namespace: ref.Namespace, Labels: i.Selector, Limit: maxSelected}) || again
	}
	return again
}

// note notes that something cannot be read.
func (g *gathering) note(ref cluster.Ref, err error) {
	key := "note " + ref.String()
	if !g.read[key] {
		g.read[key] = true
		g.notes = append(g.notes, fmt.Sprintf("%s cannot be read: %v", ref, err))
	}
}

// get reads an object, and reports whether it exists and is new.
func (g *gathering) get(ctx context.Context, ref cluster.Ref) bool {
	key := ref.Identity().String()
	if g.read[key] {
		return false
	}
	g.read[key] = true
	u, err := g.from.GetLive(ctx, ref)
	if err != nil {
		g.note(ref, err)
	}
	if err != nil || u == nil {
		return false
	}
	g.in.Manifests = append(g.in.Manifests, u.Object)
	return true
}

// list reads the objects of a selection, and reports whether any is new.
func (g *gathering) list(ctx context.Context, s cluster.Selection) bool {
	key := fmt.Sprintf("%s %s %v", s.Kind, s.Namespace, s.Labels)
	if g.read[key] {
		return false
	}
	g.read[key] = true
	found, err := g.from.ListLive(ctx, s)
	if err != nil {
		g.note(cluster.Ref{GroupVersionKind: s.Kind, Namespace: s.Namespace}, err)
		return false
	}
	again := false
	for _, u := range found {
		if one := cluster.RefOf(u).Identity().String(); !g.read[one] {
			g.read[one], again = true, true
			g.in.Manifests = append(g.in.Manifests, u.Object)
		}
	}
	return again
}
