package crd

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// depends finds what a value depends on that the user fills in elsewhere.
func (g *generator) depends(at site, v cue.Value) dependence {
	for _, e := range expressions(v) {
		if _, ok := e.(*ast.StructLit); ok {
			continue // its fields have sites of their own
		}
		if d := dependsOn(e, at); d.name != "" {
			return d
		}
	}
	return dependence{}
}

// dependent says what is wrong in the terms of what was written.
func (g *generator) dependent(at site, d dependence) {
	field, inStruct := strings.CutPrefix(at.path, d.around+".")
	switch {
	case d.key:
		g.fault(at, fmt.Sprintf("the value depends on %s, the key in its map", d.name),
			"leave it out: whoever reads the map has the key too")
	case d.relation != token.ILLEGAL && inStruct && !strings.Contains(field, "["):
		g.fault(at, fmt.Sprintf("the value is bounded by %s, and a CRD knows each field alone", d.name),
			fmt.Sprintf(`write the type alone, and in the struct that holds both @crd(rule="self.%s %v self.%s")`, celPath(field), d.relation, celPath(d.name)))
	default:
		g.fault(at, fmt.Sprintf("the value is computed from %s", d.name),
			"a spec is what a user asks for: make it optional if it may be given, and compute it in the component that needs it")
	}
}

// dependence is a reference to a field that the user fills in.
type dependence struct {
	name   string // "" if there is none
	around string // the path of the struct that it is a field of
	key    bool   // it is the key of a map: [Name=string]
	// relation is the operator of the bound that it is an operand of, if that is all.
	relation token.Token
}

// dependsOn finds a reference to a regular field of the literals around a site, direct
// or through hidden fields, definitions and lets.
func dependsOn(e ast.Node, at site) dependence {
	s := scan{at: at, seen: map[ast.Node]bool{}}
	s.walk(e)
	return s.found
}

// filledIn are the fields of schemas/operator that only a reconcile has values for.
var filledIn = []string{"cr", "live", "inputs", "components"}

type scan struct {
	at    site
	seen  map[ast.Node]bool
	found dependence
}

func (s *scan) walk(e ast.Node) {
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
			return n == e // one within an operator has fields with sites of their own
		case *ast.SelectorExpr:
			s.walk(n.X) // the selector itself is no reference
			return false
		case *ast.UnaryExpr:
			name := dotted(n.X)
			if name == "" || n.Op == token.MUL {
				return true
			}
			s.walk(n.X)
			if s.found.name != "" && !s.found.key {
				s.found.relation = n.Op
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

func (s *scan) ident(n *ast.Ident) {
	if let, ok := n.Node.(*ast.LetClause); ok {
		s.walk(let.Expr)
		return
	}
	_, imported := n.Node.(*ast.ImportSpec)
	switch scope := n.Scope.(type) {
	case nil, *ast.File: // the top of a package, of this file or of another
		if !imported && slices.Contains(filledIn, n.Name) {
			s.found = dependence{name: n.Name}
		}
	case *ast.Field:
		s.found = dependence{name: n.Name, key: true}
	case *ast.StructLit:
		around := s.at.inside(scope)
		_, constant := n.Node.(*ast.BasicLit)
		switch {
		case constant || len(around) == 0:
		case strings.HasPrefix(n.Name, "_") || strings.HasPrefix(n.Name, "#"):
			s.walk(n.Node)
		default:
			s.found = dependence{name: n.Name, around: around[len(around)-1].path}
		}
	}
}

// dotted returns a.b.c for a reference of that form, and "" for all else.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		name, _, err := ast.LabelName(e.Sel)
		if before := dotted(e.X); before != "" && err == nil {
			return before + "." + name
		}
	}
	return ""
}
