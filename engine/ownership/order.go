package ownership

import (
	"slices"

	"operetta.dev/engine/graph"
)

// Ordered returns the inventory with the groups of some components first, in that order, so that
// the order does not depend on which component was written first.
func (inv Inventory) Ordered(components []string) Inventory {
	places := make(map[string]int, len(components))
	for i, name := range components {
		places[name] = i
	}
	rank := func(g Group) int {
		if i, known := places[g.Component]; known {
			return i
		}
		return len(components)
	}
	out := slices.Clone(inv)
	slices.SortStableFunc(out, func(a, b Group) int { return rank(a) - rank(b) })
	return out
}

// WithEdges returns the inventory with edges only between components that it has. A component without
// objects is not in it; its dependents are linked to its dependencies, which keeps the order of
// deletion.
func (inv Inventory) WithEdges(dependencies func(component string) []string) Inventory {
	present := map[string]bool{}
	for _, g := range inv {
		present[g.Component] = true
	}
	out := slices.Clone(inv)
	for i, g := range out {
		out[i].DependsOn = NearestMatching(g.Component, g.DependsOn, dependencies, func(component string) bool { return present[component] })
	}
	return out
}

// withoutComponent returns the inventory with the dependents of a removed component linked to the
// dependencies of that component.
func (inv Inventory) withoutComponent(gone Group) Inventory {
	out := slices.Clone(inv)
	for i, g := range out {
		out[i].DependsOn = NearestMatching(g.Component, g.DependsOn,
			func(string) []string { return gone.DependsOn },
			func(component string) bool { return component != gone.Component })
	}
	return out
}

// NearestMatching returns the dependencies of a component that count. A dependency that does not
// count is replaced by its own dependencies.
func NearestMatching(component string, direct []string, dependencies func(string) []string, counts func(string) bool) []string {
	var out []string
	seen := map[string]bool{component: true}
	var visit func(names []string)
	visit = func(names []string) {
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			if counts(name) {
				out = append(out, name)
			} else {
				visit(dependencies(name))
			}
		}
	}
	visit(direct)
	return out
}

// DeletionOrder is the order in which the components of an inventory are deleted:
// dependents first.
type DeletionOrder struct {
	graph *graph.Graph[string, struct{}]
}

// DeletionOrder returns the order of deletion. An inventory may have cycles, when the edges of two
// components are from different versions of the package: within a cycle, the component that is
// later in the inventory is deleted first.
func (inv Inventory) DeletionOrder() DeletionOrder {
	all, acyclic := graph.New[string, struct{}](), graph.New[string, struct{}]()
	rank := map[string]int{}
	for i, g := range inv {
		all.AddNode(g.Component)
		acyclic.AddNode(g.Component)
		rank[g.Component] = i
	}
	inv.eachEdge(all, func(from, to string) { _ = all.AddEdge(from, to, struct{}{}) })
	forward := map[string][]string{} // by target, so that its dependencies are looked up once
	inv.eachEdge(all, func(from, to string) {
		if rank[from] < rank[to] {
			forward[to] = append(forward[to], from)
			return
		}
		_ = acyclic.AddEdge(from, to, struct{}{})
	})
	for to, from := range forward {
		circle := all.TransitiveDependencies(to)
		for _, f := range from {
			if !slices.Contains(circle, f) {
				_ = acyclic.AddEdge(f, to, struct{}{})
			}
		}
	}
	return DeletionOrder{acyclic}
}

// eachEdge calls f for the edges between the nodes of a graph.
func (inv Inventory) eachEdge(nodes *graph.Graph[string, struct{}], f func(from, to string)) {
	for _, g := range inv {
		for _, to := range g.DependsOn {
			if nodes.Has(to) && to != g.Component {
				f(g.Component, to)
			}
		}
	}
}

// Blocked returns the nearest dependents of a component that still have objects to delete. While
// there are any, the objects of the component stay.
func (b DeletionOrder) Blocked(component string, remains func(component string) bool) []string {
	return NearestMatching(component, b.graph.Dependents(component), b.graph.Dependents, remains)
}
