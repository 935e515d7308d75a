package syntax

import (
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
)

// atRoot rewrites an expression so that it means the same at the root of the package. It
// fails if something in the expression has no name there.
func (r *references) atRoot(e ast.Expr, depth int) (string, bool) {
	if depth > maxAliases {
		return "", false
	}
	text, err := format.Node(e)
	if err != nil {
		return "", false
	}
	// A copy, whose names can be replaced.
	copied, err := parser.ParseExpr("", "("+string(text)+")")
	if err != nil {
		return "", false
	}
	names, ok := r.replacements(e, depth)
	if !ok {
		return "", false
	}
	places := identsIn(copied)
	if len(places) != len(names) {
		return "", false
	}
	by := make(map[*ast.Ident]string, len(names))
	for i, id := range places {
		by[id] = names[i]
	}
	replaced := astutil.Apply(copied, func(c astutil.Cursor) bool {
		if id, ok := c.Node().(*ast.Ident); ok && by[id] != "" {
			if with, err := parser.ParseExpr("", by[id]); err == nil {
				c.Replace(with)
			}
			return false
		}
		return true
	}, nil)
	text, err = format.Node(replaced)
	return string(text), err == nil
}

// replacements returns, for each name in an expression, what to write at the root, or ""
// where the name can stay.
func (r *references) replacements(e ast.Expr, depth int) ([]string, bool) {
	var out []string
	for _, id := range identsIn(e) {
		if n := id.Node; n != nil && n.Pos().IsValid() && spanned(e, n) {
			if len(r.index.fields[id.Name]) > 0 {
				return nil, false // it would take the place of a field of the root
			}
			out = append(out, "")
			continue
		}
		text, ok := r.identAtRoot(id, depth)
		if !ok {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// spanned reports whether a node is a part of an expression.
func spanned(e ast.Expr, n ast.Node) bool {
	from, to, at := e.Pos().Position(), e.End().Position(), n.Pos().Position()
	return from.Filename == at.Filename && from.Offset <= at.Offset && at.Offset < to.Offset
}

// identAtRoot returns what to write for a name at the root of the package, or "" if the
// name can stay.
func (r *references) identAtRoot(id *ast.Ident, depth int) (string, bool) {
	switch n := id.Node.(type) {
	case nil:
		return "", true // a field of another file, or one of CUE's own names
	case *ast.ImportSpec: // an expression at the root uses a package of CUE itself under its own name, without importing it
		return "", isBuiltin(id) && path.Base(importedPath(id)) == id.Name
	case *ast.LetClause:
		text, ok := r.atRoot(n.Expr, depth+1)
		return "(" + text + ")", ok
	case *ast.Alias:
		return "", false
	}
	switch scope := id.Scope.(type) {
	case nil, *ast.File:
		if name := fieldName(id); name != id.Name {
			return name, ast.IsValidIdent(name)
		}
		return "", true
	case *ast.ForClause:
		name, ok := id.Node.(*ast.Ident)
		return variable(name), ok
	case *ast.LetClause:
		text, ok := r.atRoot(scope.Expr, depth+1)
		return "(" + text + ")", ok
	case *ast.StructLit:
		path := r.places[scope]
		return path + selection(fieldName(id)), path != ""
	}
	return "", false
}

// variable returns a unique name for a variable of a comprehension: at the root, the
// clauses of several comprehensions are joined.
func variable(id *ast.Ident) string {
	if id.Name == "_" {
		return "_"
	}
	p := id.Pos().Position()
	return fmt.Sprintf("at%d_%d_%s", p.Line, p.Column, strings.TrimLeft(id.Name, "_#$"))
}

// identsIn returns the names in an expression that refer to something, in the order of
// the text.
func identsIn(n ast.Node) []*ast.Ident {
	var out []*ast.Ident
	var before func(n ast.Node) bool
	before = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ast.Walk(n.X, before, nil)
			return false
		case *ast.Field:
			if _, literal := literalLabel(n.Label); !literal {
				ast.Walk(n.Label, before, nil)
			}
			ast.Walk(n.Value, before, nil)
			return false
		case *ast.ForClause:
			ast.Walk(n.Source, before, nil)
			return false
		case *ast.LetClause:
			ast.Walk(n.Expr, before, nil)
			return false
		case *ast.Ident:
			out = append(out, n)
		}
		return true
	}
	ast.Walk(n, before, nil)
	return out
}
