package rollout

import (
	"context"
	"slices"

	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// plan orders the components and finds out which are excluded. The objects of an excluded
// component are going to be deleted, so the package is evaluated again without them: what
// needs them is excluded as well, and is deleted first.
func (ev *evaluated) plan(ctx context.Context) error {
	for {
		if err := ev.connect(); err != nil {
			return err
		}
		if !ev.exclude() {
			return nil
		}
		if err := ev.evaluateOnce(ctx); err != nil {
			return err
		}
	}
}

// connect builds the graph of the components.
func (ev *evaluated) connect() error {
	g := graph.New[string, program.Edge]()
	for _, c := range ev.rollout.Components {
		g.AddNode(c.Name)
	}
	for _, c := range ev.rollout.Components {
		for _, e := range c.Edges {
			if !g.Has(e.To) {
				continue // the gate decides: a derived edge may lead to a component that does not exist
			}
			if err := g.AddEdge(c.Name, e.To, e); err != nil {
				return err
			}
		}
	}
	if _, err := g.Order(); err != nil {
		cycles := g.Cycles()
		return stopAt(cycles[0].Path[0].Data.Position, cycleReason(cycles), err.Error())
	}
	ev.graph = g
	return nil
}

// cycleReason returns whose mistake a cycle is: the resource's, if one of the edges follows
// from its data, or else the package's.
func cycleReason(cycles []*graph.CycleError[string, program.Edge]) status.Reason {
	for _, cycle := range cycles {
		if !slices.ContainsFunc(cycle.Path, func(e graph.Edge[string, program.Edge]) bool { return e.Data.FromData }) {
			return status.ReasonInvalidPackage
		}
	}
	return status.ReasonInvalidSpec
}

// exclude finds the components that should not exist and hides their live objects from the
// package. It reports whether there was anything to hide. Hidden objects stay hidden to the
// end of the rollout, so that the verdict of a when does not depend on its own effect.
func (ev *evaluated) exclude() bool {
	order, _ := ev.graph.Order()
	components := make([]program.Component, len(order))
	for i, name := range order {
		components[i], _ = ev.component(name)
	}
	ev.excluded = program.Excluded(components, ev.hidden)
	before := len(ev.hidden)
	for name, why := range ev.excluded {
		if len(ev.live[name]) > 0 {
			ev.hidden[name] = why
		}
	}
	return len(ev.hidden) > before
}

// next returns the components that are not done and whose dependencies all are: a layer of the
// graph, unless what an earlier layer wrote has changed the graph.
func (ev *evaluated) next(done map[string]bool) []string {
	var layer []string
	for _, name := range ev.graph.Nodes() {
		ready := !done[name]
		for _, to := range ev.graph.Dependencies(name) {
			ready = ready && done[to]
		}
		if ready {
			layer = append(layer, name)
		}
	}
	return layer
}
