package program

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/parser"

	"operetta.dev/engine/program/syntax"
)

// uses reports whether the conditions around a reference hold for a component. While they
// are undecided, the edge stays: it may be all that holds a change back.
func (e *evaluator) uses(component string, d syntax.DerivedEdge) bool {
	if d.Uses == "" || e.asked == nil {
		return true
	}
	by, known := e.asked[d.Uses]
	if !known {
		by = e.usersOf(d.Uses)
		e.asked[d.Uses] = by
	}
	return by == nil || slices.Contains(by, component) || slices.Contains(by, syntax.AnyComponent)
}

// usersOf evaluates which components use an edge. It returns nil while that is undecided.
func (e *evaluator) usersOf(uses string) []string {
	// It is parsed each time, because CUE writes to the syntax that it compiles.
	expr, err := parser.ParseExpr("", "{"+uses+"}")
	if err != nil {
		return nil
	}
	v := e.compiled.base.Context().BuildExpr(expr, cue.Scope(e.root), cue.ImportPath(e.importPath), cue.InferBuiltins(true)) //nolint:staticcheck // a package has one context
	it, err := v.Fields()
	if err != nil || v.Validate(cue.Concrete(true)) != nil {
		return nil
	}
	out := []string{}
	for it.Next() {
		out = append(out, it.Selector().Unquoted())
	}
	return out
}

// derivedEdge returns an edge that follows from a reference as one of a component. It is
// optional: whether the reference matters shows in the rendering.
func derivedEdge(d syntax.DerivedEdge) Edge {
	return Edge{To: d.To, Until: UntilVerified, Origin: Derived, Optional: true, If: d.If, Position: d.Position}
}

// derivedEdges returns the edges of a component that follow from its references, under
// whichever conditions.
func derivedEdges(x *syntax.Index, component string) []Edge {
	var out []Edge
	for _, d := range x.DerivedEdges(component, syntax.Declaration{}) {
		out = append(out, derivedEdge(d))
	}
	return out
}

// EdgesIn returns the edges of a component as far as the text of its package shows: those
// that are written in dependsOn, which an evaluation may leave out, and those that follow
// from references.
func EdgesIn(x *syntax.Index, component string) []Edge {
	var out []Edge
	derived := derivedEdges(x, component)
	declared, _ := x.Names("components", component, "dependsOn")
	for _, to := range declared {
		e := Edge{To: to, Until: UntilVerified, Origin: Declared, Position: x.PositionOf("components", component, "dependsOn", to)}
		e.If = syntax.Condition(x, component, "dependsOn", to)
		for _, d := range derived { // it is there where the declared one is not
			if d.To == to {
				e.If = syntax.Either(e.If, d.If)
			}
		}
		out = append(out, e)
	}
	for _, e := range derived {
		if !slices.Contains(declared, e.To) {
			out = append(out, e)
		}
	}
	return out
}
