package testcase

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
)

// Update returns the text of a file of tests with what is decided in place of what is wanted, and how many values it
// has replaced. It replaces a value that is written as a literal where a difference is; everything else is left. The
// result of Run with the new text says what still differs. It errors if the file is no CUE.
func Update(file string, text []byte, differences []Difference) (updated []byte, replaced int, err error) {
	syntax, err := parser.ParseFile(file, text, parser.ParseComments)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	edits := map[int]edit{}
	for _, d := range differences {
		if path.Base(d.Position.File) != path.Base(file) || d.Got == nil {
			continue
		}
		if e, ok := editOf(syntax, d); ok {
			edits[e.from] = e
		}
	}
	sorted := slices.SortedFunc(maps.Values(edits), func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	for _, e := range sorted { // the last one first, so that the offsets of the others hold
		text = slices.Concat(text[:e.from], e.text, text[e.to:])
	}
	if len(sorted) == 0 {
		return text, 0, nil
	}
	updated, err = format.Source(text)
	return updated, len(sorted), err
}

// An edit replaces a part of a file.
type edit struct {
	from, to int
	text     []byte
}

// editOf returns the edit that ends a difference, if the value is a literal.
func editOf(file *ast.File, d Difference) (edit, bool) {
	wanted := cue.ParsePath(d.Path).Selectors()
	var found ast.Expr
	best, several := 0, false
	consider := func(at []string, e ast.Expr) {
		if e.Pos().Line() != d.Position.Line {
			return
		}
		switch n := sameEnd(at, wanted); {
		case n > best:
			found, best, several = e, n, false
		case n == best && n > 0:
			several = true
		}
	}
	for _, decl := range file.Decls {
		visit(decl, nil, consider)
	}
	if found == nil || several || !isLiteral(found) || !isValue(found, d.Want) {
		return edit{}, false
	}
	v := cuecontext.New().CompileBytes(d.Got)
	if v.Err() != nil {
		return edit{}, false
	}
	text, err := format.Node(v.Syntax(cue.Final()))
	if err != nil {
		return edit{}, false
	}
	return edit{found.Pos().Offset(), found.End().Offset(), text}, true
}

// visit tells the path and value of each field and element below a node, with all values that a field is unified from.
func visit(n ast.Node, at []string, tell func(at []string, e ast.Expr)) {
	switch n := n.(type) {
	case *ast.Field:
		name, _, err := ast.LabelName(n.Label)
		if err != nil {
			name = "_" // a pattern
		}
		below := append(slices.Clip(at), name)
		tell(below, n.Value)
		visit(n.Value, below, tell)
	case *ast.StructLit:
		for _, d := range n.Elts {
			visit(d, at, tell)
		}
	case *ast.ListLit:
		for i, e := range n.Elts {
			if !isElement(e) {
				break // nobody knows which the next one is
			}
			below := append(slices.Clip(at), fmt.Sprint(i))
			tell(below, e)
			visit(e, below, tell)
		}
	case *ast.EmbedDecl:
		visit(n.Expr, at, tell)
	case *ast.BinaryExpr:
		visit(n.X, at, tell)
		visit(n.Y, at, tell)
	case *ast.ParenExpr:
		visit(n.X, at, tell)
	case *ast.Comprehension:
		visit(n.Value, at, tell)
	}
}

// isElement reports whether a part of a list is one element.
func isElement(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Comprehension, *ast.Ellipsis:
		return false
	}
	return true
}

// isValue reports whether a literal is a value, so that it is the one that a difference is about.
func isValue(e ast.Expr, value []byte) bool {
	text, err := format.Node(e)
	if err != nil {
		return false
	}
	written, err := cuecontext.New().CompileBytes(text).MarshalJSON()
	return err == nil && bytes.Equal(written, value)
}

// sameEnd returns how many names at the end of a path are those of another one.
func sameEnd(at []string, wanted []cue.Selector) int {
	n := 0
	for n < len(at) && n < len(wanted) {
		s := wanted[len(wanted)-1-n]
		name := s.String()
		switch s.LabelType() {
		case cue.StringLabel:
			name = s.Unquoted()
		case cue.IndexLabel:
			name = fmt.Sprint(s.Index())
		}
		if at[len(at)-1-n] != name {
			break
		}
		n++
	}
	return n
}

// isLiteral reports whether an expression is a value as it is written, with nothing to compute.
func isLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true // also true, false and null
	case *ast.UnaryExpr:
		_, number := e.X.(*ast.BasicLit)
		return number && e.Op.String() == "-"
	case *ast.ListLit:
		return !slices.ContainsFunc(e.Elts, func(e ast.Expr) bool { return !isLiteral(e) })
	case *ast.StructLit:
		return !slices.ContainsFunc(e.Elts, func(d ast.Decl) bool {
			f, ok := d.(*ast.Field)
			return !ok || !isLiteral(f.Value)
		})
	}
	return false
}
