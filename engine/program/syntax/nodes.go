package syntax

import (
	"iter"
	"strconv"

	"cuelang.org/go/cue/ast"
)

// NodesIn yields all nodes of some text, each before those that it consists of.
func NodesIn[N ast.Node](text ...N) iter.Seq[ast.Node] {
	return func(yield func(ast.Node) bool) {
		more := true
		for _, n := range text {
			ast.Walk(n, func(n ast.Node) bool {
				more = more && yield(n)
				return more
			}, nil)
		}
	}
}

// importedPath returns the path of the package that a node is the name of, or "".
func importedPath(n ast.Node) string {
	id, ok := n.(*ast.Ident)
	if !ok {
		return ""
	}
	spec, ok := id.Node.(*ast.ImportSpec)
	if !ok {
		return ""
	}
	path, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
	return path
}
