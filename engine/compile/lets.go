package compile

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// What a let stands for CUE does not tell: its reference is resolved when it is looked at. So in the open
// form of a package each let is a hidden field, which is followed as any other.

// letPrefix is how the names of hidden fields begin that are a let in the package.
const letPrefix = "_0let"

// letsAsFields makes hidden fields of lets. A let in a loop over a struct stays one: the structs of
// all rounds are one struct, in which it would be one field.
func letsAsFields(files []*ast.File) {
	l := &letNames{of: map[*ast.LetClause]string{}}
	for _, f := range files {
		l.rename(f.Decls, false)
	}
	for _, f := range files {
		ast.Walk(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				l.refer(id)
			}
			return true
		}, nil)
	}
}

// letNames are the names of the lets that are fields now.
type letNames struct{ of map[*ast.LetClause]string }

// rename makes fields of lets among declarations, and below them.
func (l *letNames) rename(decls []ast.Decl, inLoop bool) {
	for i, d := range decls {
		let, ok := d.(*ast.LetClause)
		if !ok || inLoop {
			l.below(d, inLoop)
			continue
		}
		l.below(let.Expr, false)
		name := letPrefix + strconv.Itoa(len(l.of)) + "_" + let.Ident.Name
		l.of[let] = name
		label := ast.NewIdent(name)
		label.NamePos = let.Ident.NamePos
		decls[i] = &ast.Field{Label: label, Value: let.Expr}
	}
}

// below makes fields of lets in a node.
func (l *letNames) below(n ast.Node, inLoop bool) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructLit:
			l.rename(n.Elts, inLoop)
			return false
		case *ast.Field:
			l.below(n.Value, false)
			return false
		case *ast.ListLit:
			for _, e := range n.Elts {
				if c, ok := e.(*ast.Comprehension); ok {
					e = c.Value
				}
				l.below(e, false)
			}
			return false
		case *ast.Comprehension:
			l.below(n.Value, inLoop || loops(n))
			return false
		}
		return true
	}, nil)
}

// loops reports whether a comprehension may have several rounds.
func loops(c *ast.Comprehension) bool {
	return slices.ContainsFunc(c.Clauses, func(clause ast.Clause) bool { _, ok := clause.(*ast.ForClause); return ok })
}

// refer makes an identifier that refers to a let refer to its field.
func (l *letNames) refer(id *ast.Ident) {
	let, ok := id.Node.(*ast.LetClause)
	if !ok {
		return
	}
	if name, ok := l.of[let]; ok {
		id.Name, id.Node = name, let.Expr
	}
}

// isLet reports whether a field is a let in the package: what is wrong in one is wrong only where it is
// used.
func isLet(s cue.Selector) bool { return strings.HasPrefix(s.String(), letPrefix) }

// isInLet reports whether a path leads into a let in the package.
func isInLet(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(name string) bool { return strings.HasPrefix(name, letPrefix) })
}
