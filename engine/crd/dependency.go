package crd

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// findDependency returns the reference to user input that a value depends on, if any.
func (g *generator) findDependency(at location, v cue.Value) dependency {
	for _, e := range sourceExpressions(v) {
		if _, ok := e.(*ast.StructLit); ok {
			continue // its fields have locations of their own
		}
		if d := dependencyOf(e, at); d.name != "" {
			return d
		}
	}
	return dependency{}
}

// reportDependency adds the fault for a dependency, in terms of what the author wrote.
func (g *generator) reportDependency(at location, d dependency) {
	field, inStruct := strings.CutPrefix(at.path, d.structPath+".")
	switch {
	case d.isMapKey:
		g.fault(at, fmt.Sprintf("the value depends on %s, the key in its map", d.name),
			"leave it out: code that reads the map also has the key")
	case d.operator != token.ILLEGAL && inStruct && !strings.Contains(field, "["):
		g.fault(at, fmt.Sprintf("the value is bounded by %s, and a CRD validates each field on its own", d.name),
			fmt.Sprintf(`write the type alone, and in the struct that holds both @crd(rule="self.%s %v self.%s")`, celPath(field), d.operator, celPath(d.name)))
	default:
		g.fault(at, fmt.Sprintf("the value is computed from %s", d.name),
			"a spec holds what a user asks for: make the field optional if users may set it, and compute the value in the component that needs it")
	}
}

// dependency is a reference to a field that the user fills in.
type dependency struct {
	name       string // "" if there is none
	structPath string // the path of the struct that it is a field of
	isMapKey   bool   // it is the key of a map: [Name=string]
	// operator is the comparison if the value is a bound, such as >= in >=min.
	operator token.Token
}

// dependencyOf returns a reference of e to a regular field of the literals around a location,
// direct or through hidden fields, definitions and lets.
func dependencyOf(e ast.Node, at location) dependency {
	s := dependencyScan{at: at, seen: map[ast.Node]bool{}}
	s.walk(e)
	return s.found
}

// reconcileFields are the fields of schemas/operator that only a reconcile has values for.
var reconcileFields = []string{"cr", "live", "inputs", "components"}

type dependencyScan struct {
	at    location
	seen  map[ast.Node]bool
	found dependency
}

func (s *dependencyScan) walk(e ast.Node) {
	if e == nil || s.seen[e] {
		return
	}
	s.seen[e] = true
	ast.Walk(e, func(n ast.Node) bool {
		if s.found.name != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.StructLit:
			return n == e // a literal within an operator has fields with locations of their own
		case *ast.SelectorExpr:
			s.walk(n.X) // the selector itself is no reference
			return false
		case *ast.UnaryExpr:
			name := dottedPath(n.X)
			if name == "" || n.Op == token.MUL {
				return true
			}
			s.walk(n.X)
			if s.found.name != "" && !s.found.isMapKey {
				s.found.operator = n.Op
				_, rest, _ := strings.Cut(name, ".")
				s.found.name = strings.TrimSuffix(s.found.name+"."+rest, ".")
			}
			return false
		case *ast.Ident:
			s.ident(n)
		}
		return true
	}, nil)
}

func (s *dependencyScan) ident(n *ast.Ident) {
	if let, ok := n.Node.(*ast.LetClause); ok {
		s.walk(let.Expr)
		return
	}
	_, imported := n.Node.(*ast.ImportSpec)
	switch scope := n.Scope.(type) {
	case nil, *ast.File: // the top of a package, of this file or of another
		if !imported && slices.Contains(reconcileFields, n.Name) {
			s.found = dependency{name: n.Name}
		}
	case *ast.Field:
		s.found = dependency{name: n.Name, isMapKey: true}
	case *ast.StructLit:
		around := s.at.occurrencesOf(scope)
		_, constant := n.Node.(*ast.BasicLit)
		switch {
		case constant || len(around) == 0:
		case strings.HasPrefix(n.Name, "_") || strings.HasPrefix(n.Name, "#"):
			s.walk(n.Node)
		default:
			s.found = dependency{name: n.Name, structPath: around[len(around)-1].path}
		}
	}
}

// dottedPath returns a.b.c for a reference of that form, and "" for everything else.
func dottedPath(e ast.Expr) string { return strings.Join(referredNames(e), ".") }

// referredNames returns the names of a reference like a.b.c, of which each may have a dot in it, and nil for everything else.
func referredNames(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.SelectorExpr:
		name, _, err := ast.LabelName(e.Sel)
		if before := referredNames(e.X); before != nil && err == nil {
			return append(before, name)
		}
	}
	return nil
}
