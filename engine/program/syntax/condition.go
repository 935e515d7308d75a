package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
)

// Condition returns the conditions of the comprehensions around what is written at a path below a component, also of
// those around the component, as the author wrote them. It is "" if it is written without any, and if the text does not
// show it.
func Condition(x *Index, component string, path ...string) string {
	within := x.definitions[component]
	for _, name := range path {
		var next []Member
		for _, m := range within {
			eachMember(m.value, m.guards, func(d Member) {
				if d.kind == named && d.name == name {
					next = append(next, d)
				}
			})
		}
		within = next
	}
	var all []string
	for _, m := range within {
		condition := conditionOf(m.guards)
		switch {
		case condition == "":
			return ""
		case !slices.Contains(all, condition):
			all = append(all, condition)
		}
	}
	return strings.Join(all, " || ")
}

// conditionOf returns the conditions among the clauses of comprehensions as a text.
func conditionOf(guards []ast.Clause) string {
	var all []string
	for _, g := range guards {
		switch g := g.(type) {
		case *ast.IfClause:
			all = append(all, Source(g.Condition))
		case *ast.ForClause:
			all = append(all, forText(g))
		}
	}
	return strings.Join(all, " && ")
}

// Either returns the condition that one of two holds; "" always does.
func Either(a, b string) string {
	switch {
	case a == "" || b == "":
		return ""
	case a == b:
		return a
	}
	return a + " || " + b
}
