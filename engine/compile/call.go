package compile

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// interpolation translates a text with expressions in it. CUE returns the pieces between them as
// they are written.
func (t *translator) interpolation(v cue.Value, args []cue.Value) (*template.Node, error) {
	src, ok := unwrapped(program.ExpressionOf(v)).(*ast.Interpolation)
	if !ok || len(src.Elts) != len(args) {
		return nil, t.fail(v, "its text is not known")
	}
	pieces, err := piecesOf(src)
	if err != nil {
		return nil, t.fail(v, "%v", err)
	}
	nodes := make([]*template.Node, len(args))
	for i, arg := range args {
		if i%2 == 0 {
			nodes[i] = template.Constant(pieces[i/2])
			continue
		}
		if nodes[i], err = t.node(arg); err != nil {
			return nil, err
		}
	}
	n, err := template.Call("interpolation", nodes...)
	if err == nil && v.IncompleteKind() == cue.BytesKind {
		n, err = template.Call("bytes", n)
	}
	if err != nil {
		return nil, t.fail(v, "%v", err)
	}
	return n, nil
}

// piecesOf returns what stands between the expressions of an interpolation.
func piecesOf(src *ast.Interpolation) ([]string, error) {
	text := func(i int) string {
		lit, _ := src.Elts[i].(*ast.BasicLit)
		if lit == nil {
			return ""
		}
		return lit.Value
	}
	last := len(src.Elts) - 1
	info, begin, _, err := literal.ParseQuotes(text(0), text(last))
	if err != nil {
		return nil, err
	}
	var out []string
	for i := 0; i <= last; i += 2 {
		piece := text(i)
		if i == 0 {
			piece = piece[begin:]
		} else {
			piece = strings.TrimPrefix(piece, ")")
		}
		unquoted, err := info.Unquote(piece)
		if err != nil {
			return nil, err
		}
		out = append(out, unquoted)
	}
	return out, nil
}

// function returns the name of what is called, such as strings.ToLower, or "".
func function(f cue.Value) string {
	switch e := f.Source().(type) {
	case nil:
		return fmt.Sprint(f) // one of the language, such as len
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		id, ok := e.X.(*ast.Ident)
		if !ok {
			return ""
		}
		spec, ok := id.Node.(*ast.ImportSpec)
		if !ok {
			return ""
		}
		path, err := strconv.Unquote(spec.Path.Value)
		name, _, labelErr := ast.LabelName(e.Sel)
		if err != nil || labelErr != nil {
			return ""
		}
		return path[strings.LastIndex(path, "/")+1:] + "." + name
	}
	return ""
}

// call translates a call of a function of CUE.
func (t *translator) call(v cue.Value, args []cue.Value) (*template.Node, error) {
	name := function(args[0])
	if name == "" {
		return nil, t.fail(v, "what it calls is not known")
	}
	return t.operation(v, name, args[1:])
}
