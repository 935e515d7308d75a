package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/template"
)

// holes are the places of a view that are evaluated as types: each text and each integer that is not
// pinned.
type holes struct {
	// at has the paths of the holes by the syntax that stands for them. CUE returns that very
	// syntax as the source of a value.
	at map[ast.Node][]string
	// paths has them by their names, and sorted once all of them are known.
	paths  map[string][]string
	sorted [][]string
}

func newHoles() *holes { return &holes{at: map[ast.Node][]string{}, paths: map[string][]string{}} }

// separator stands between the names of a path in a key. No name has it.
const separator = "\x00"

// syntax returns data as CUE with a type for each hole. What is not in view is concrete: such as a
// default of the schema, which is not in the view that a template is evaluated over.
func (h *holes) syntax(data, view any, pins template.Pins, path []string) ast.Expr {
	switch v := data.(type) {
	case map[string]any:
		return h.fields(v, view, pins, path)
	case []any:
		elements, _ := view.([]any)
		l := &ast.ListLit{}
		for i, e := range v {
			var seen any
			if i < len(elements) {
				seen = elements[i]
			}
			l.Elts = append(l.Elts, h.syntax(e, seen, pins.Below(template.Anywhere), below(path, strconv.Itoa(i))))
		}
		return l
	case string:
		if _, given := view.(string); given && !pins.Has() {
			return h.hole("string", path)
		}
	case int64:
		if _, given := view.(int64); given && !pins.Has() {
			return h.hole("int", path)
		}
	}
	return scalar(data)
}

func (h *holes) fields(v map[string]any, view any, pins template.Pins, path []string) ast.Expr {
	given, _ := view.(map[string]any)
	s := &ast.StructLit{}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		at := below(path, name)
		f := &ast.Field{Label: ast.NewString(name), Value: h.syntax(v[name], given[name], pins.Below(name), at)}
		if _, ok := h.at[f.Value]; ok {
			h.at[f] = at
		}
		s.Elts = append(s.Elts, f)
	}
	return s
}

func (h *holes) hole(kind string, path []string) ast.Expr {
	e := ast.NewIdent(kind)
	h.at[e], h.paths[strings.Join(path, separator)] = path, path
	return e
}

// below returns a path with one more name.
func below(path []string, name string) []string { return append(slices.Clip(path), name) }

// scalar returns a scalar as CUE. Null is what it is when it is filled in as data: any value.
func scalar(v any) ast.Expr {
	switch v := v.(type) {
	case string:
		return &ast.BasicLit{Kind: token.STRING, Value: literal.String.Quote(v)}
	case int64:
		if v < 0 {
			return &ast.UnaryExpr{Op: token.SUB, X: ast.NewLit(token.INT, strings.TrimPrefix(strconv.FormatInt(v, 10), "-"))}
		}
		return ast.NewLit(token.INT, strconv.FormatInt(v, 10))
	case bool:
		return ast.NewBool(v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return &ast.BasicLit{Kind: token.FLOAT, Value: text}
	}
	return ast.NewIdent("_")
}

// presence returns data with true in the place of each scalar, as CUE.
func presence(data any) ast.Expr {
	switch v := data.(type) {
	case map[string]any:
		s := &ast.StructLit{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s.Elts = append(s.Elts, &ast.Field{Label: ast.NewString(name), Value: presence(v[name])})
		}
		return s
	case []any:
		l := &ast.ListLit{}
		for _, e := range v {
			l.Elts = append(l.Elts, presence(e))
		}
		return l
	case nil:
		return ast.NewIdent("_")
	}
	return ast.NewBool(true)
}
