package rollout

import (
	"context"
	"errors"
	"slices"

	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// decide orders the components and finds out which are excluded. What is excluded is
// on its way out, so that nothing may count on its objects any more, and the package
// is evaluated without them: whoever needs them is excluded as well, and goes first.
func (r *run) decide(ctx context.Context) error {
	for {
		if err := r.connect(); err != nil {
			return err
		}
		if !r.exclude() {
			return nil
		}
		if err := r.evaluateOnce(ctx); err != nil {
			return err
		}
	}
}

// connect builds the graph of the components.
func (r *run) connect() error {
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
		r.fault(blame(err), oneLine(err.Error()))
		return errStop
	}
	r.graph = g
	return nil
}

// blame returns who is to mend a cycle: the resource, if its data is why one of the
// edges is there, or else the package.
func blame(err error) status.Reason {
	for _, one := range unjoined(err) {
		cycle, ok := errors.AsType[*graph.CycleError[string, program.Edge]](one)
		fromData := ok && slices.ContainsFunc(cycle.Path, func(e graph.Edge[string, program.Edge]) bool { return e.Data.FromData })
		if !fromData {
			return status.ReasonInvalidPackage
		}
	}
	return status.ReasonInvalidSpec
}

// unjoined returns the errors that one joins.
func unjoined(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return []error{err}
}

// exclude finds the components that should not exist, hides the live objects of those,
// and reports whether there was anything to hide. What is hidden stays so to the end of
// the rollout: a when must not change its mind by what follows from it.
func (r *run) exclude() bool {
	order, _ := r.graph.Order()
	components := make([]program.Component, len(order))
	for i, name := range order {
		components[i], _ = r.component(name)
	}
	r.excluded = program.Excluded(components, r.hidden)
	before := len(r.hidden)
	for name, why := range r.excluded {
		if len(r.live[name]) > 0 {
			r.hidden[name] = why
		}
	}
	return len(r.hidden) > before
}

// next returns the components that are not done, and all of whose dependencies are: a
// layer of the graph, unless what a layer wrote has changed the graph behind it.
func (r *run) next(done map[string]bool) []string {
	var layer []string
	for _, name := range r.graph.Nodes() {
		ready := !done[name]
		for _, to := range r.graph.Dependencies(name) {
			ready = ready && done[to]
		}
		if ready {
			layer = append(layer, name)
		}
	}
	return layer
}
