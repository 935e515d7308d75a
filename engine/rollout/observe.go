package rollout

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// observe reads the live objects that the inventory names.
func (r *run) observe(ctx context.Context) error {
	for _, g := range r.inventory {
		for _, e := range g.Objects {
			u, err := r.get(ctx, e.Ref(r.in.Owner.Namespace))
			if err != nil {
				return err
			}
			r.see(g.Component, e.Object, u)
		}
	}
	return nil
}

// get reads an object; a kind that is not served has none.
func (r *run) get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := r.Cluster.Get(ctx, ref)
	if cluster.IsKindNotServed(err) {
		return nil, nil
	}
	return u, err
}

// see records a live object if it is the resource's own: a package never sees
// the objects of others under its names.
func (r *run) see(component, object string, u *unstructured.Unstructured) {
	if situation, _ := plan.Situate(u, r.in.Owner); situation != plan.Owned && situation != plan.Terminating {
		delete(r.live[component], object)
		return
	}
	if r.live[component] == nil {
		r.live[component] = map[string]*unstructured.Unstructured{}
	}
	r.live[component][object] = u
}

// evaluate evaluates the package, and again as long as that reveals objects that
// exist already: after a lost status the first evaluation knows none.
func (r *run) evaluate(ctx context.Context) error {
	for range maxRounds {
		if err := r.evaluateOnce(); err != nil {
			return err
		}
		found, err := r.discover(ctx)
		if err != nil {
			return err
		}
		if !found {
			return nil
		}
	}
	return fmt.Errorf("the rendered identities keep changing with what is observed; an object's name must not depend on that object")
}

// maxRounds bounds how often one evaluation may reveal further objects. Each
// round but the last finds at least one component's objects.
const maxRounds = 100

func (r *run) evaluateOnce() error {
	out, err := r.Package.Evaluate(program.Session{CR: r.in.CR, Live: r.live.values()})
	if err != nil {
		text, detail, _ := strings.Cut(err.Error(), "\n")
		r.fault(status.ReasonEvaluationFailed, text)
		r.result.Detail = detail
		return errStop
	}
	r.rollout = out
	if len(out.Invalid) > 0 {
		r.fault(status.ReasonInvalidSpec, oneLine(out.Invalid.Error()))
		return errStop
	}
	return nil
}

// discover reads rendered objects that are not known yet.
func (r *run) discover(ctx context.Context) (bool, error) {
	found := false
	for _, c := range r.rollout.Components {
		for _, o := range c.Objects {
			if o.Manifest == nil || r.live[c.Name][o.Name] != nil {
				continue
			}
			u, err := r.get(ctx, r.refOf(o))
			if err != nil {
				return false, err
			}
			r.see(c.Name, o.Name, u)
			found = found || r.live[c.Name][o.Name] != nil
		}
	}
	return found, nil
}

// refOf returns the identity of a rendered object.
func (r *run) refOf(o program.Object) cluster.Ref {
	u := &unstructured.Unstructured{Object: o.Manifest}
	ref := cluster.RefOf(u)
	if ref.Namespace == "" {
		ref.Namespace = r.in.Owner.Namespace
	}
	return ref
}

// values returns the live objects as the program takes them.
func (l live) values() map[string]map[string]map[string]any {
	out := make(map[string]map[string]map[string]any, len(l))
	for component, objects := range l {
		m := make(map[string]map[string]any, len(objects))
		for name, u := range objects {
			m[name] = u.Object
		}
		out[component] = m
	}
	return out
}

// decide orders the components and finds out which are excluded.
func (r *run) decide(context.Context) error {
	g := graph.New[string, program.Edge]()
	for _, c := range r.rollout.Components {
		g.AddNode(c.Name)
	}
	for _, c := range r.rollout.Components {
		for _, e := range c.Edges {
			if !g.Has(e.To) {
				continue // judged at the gate: a derived edge may lead to a component that is not there
			}
			if err := g.AddEdge(c.Name, e.To, e); err != nil {
				return err
			}
		}
	}
	if _, err := g.Order(); err != nil {
		r.fault(status.ReasonInvalidPackage, err.Error())
		return errStop
	}
	r.graph = g
	r.exclude()
	r.outcomes = map[string]status.Component{}
	return nil
}

// exclude finds the components that should not exist: whose when is false, and
// whoever needs one of those. An optional edge needs nothing, and a derived one
// only what the rendering misses.
func (r *run) exclude() {
	r.excluded = map[string]string{}
	order, _ := r.graph.Order()
	for _, name := range order {
		c, _ := r.component(name)
		if c.When.Verdict == program.False {
			r.excluded[name] = "its when is false"
			continue
		}
		for _, e := range c.Edges {
			if _, gone := r.excluded[e.To]; !gone {
				continue
			}
			if !e.Optional || (e.Origin == program.Derived && c.Rendering == program.RenderedIncomplete) {
				r.excluded[name] = "it depends on " + e.To + ", which is excluded"
				break
			}
		}
	}
}
