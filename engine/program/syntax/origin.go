package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// An origin is the source of the value of an expression, as far as the text shows: a field of the
// spec or of the configuration, an expression in the package, or the result of a function.
type origin struct {
	// Given has the schema of a field. path is its path, and within is the number of lists and
	// maps around it.
	UserValue
	path   string
	within int
	// expr is the expression in the package.
	expr ast.Expr
	// made is the size of the result of a function, and of each of its elements.
	made *Amount
	// alternative is true if the expression has this origin or another one, and not both.
	alternative bool
}

// origins returns the origins of the value at a path below an expression.
func (s *sizes) origins(e ast.Expr, path ...string) []origin {
	at := place{e, strings.Join(path, "\x00")}
	found, done := s.found[at]
	if done || e == nil || len(path) > maxTrace || len(s.found) > maxTraceSteps {
		return found // a reference to itself has no origins while they are being found
	}
	s.found[at] = nil
	var out []origin
	resolutions, ends := s.index.resolve(e, path)
	if ends {
		out = s.end(e, path)
	}
	for _, r := range resolutions {
		of := s.originsOfResolution(r)
		if r.alternative {
			of = anyOf(of)
		}
		out = append(out, of...)
	}
	s.found[at] = distinct(out)
	return s.found[at]
}

// end returns the origins of an expression that does not resolve any further.
func (s *sizes) end(e ast.Expr, path []string) []origin {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(path) == 0 {
		return []origin{{expr: e}}
	}
	a := s.of(call)
	if function(call.Fun) == "list.Range" && len(call.Args) > 1 { // an element
		count := a
		a = either(s.of(call.Args[0]), s.of(call.Args[1]))
		a.Low, a.High, a.known = min(a.Low, count.Low), max(a.High, count.High), true
	}
	a.made = true
	return []origin{{made: &a}}
}

// originsOfResolution returns the origins of one step. Live objects and inputs have none, because
// nothing is known about their sizes.
func (s *sizes) originsOfResolution(r resolution) []origin {
	if r.external == nil {
		if r.key {
			return nil
		}
		return s.origins(r.value, r.path...)
	}
	root, ok := s.roots[r.external.Path[0]]
	if !ok {
		return nil
	}
	out := []origin{{UserValue: root, path: r.external.Path[0]}}
	for _, name := range slices.Concat(r.external.Path[1:], r.path) {
		var next []origin
		for _, o := range out {
			if name == Each {
				next = append(next, o.elements()...)
			} else {
				next = append(next, o.field(name)...)
			}
		}
		out = next
	}
	return out
}

// distinct returns each origin once. Otherwise a chain of names that each refer to the previous one
// twice would have more origins than fit into memory.
func distinct(of []origin) []origin {
	type identity struct {
		expr        ast.Expr
		path        string
		made        *Amount
		alternative bool
	}
	seen := map[identity]bool{}
	return slices.DeleteFunc(slices.Clone(of), func(o origin) bool {
		id := identity{o.expr, o.path, o.made, o.alternative}
		before := seen[id]
		seen[id] = true
		return before
	})
}

// anyOf returns origins as alternatives.
func anyOf(of []origin) []origin {
	out := slices.Clone(of)
	for i := range out {
		out[i].alternative = true
	}
	return out
}

// field returns the origins of a field of a user's value.
func (o origin) field(name string) []origin {
	if o.path == "cr" && name != "spec" || !isRegular(name) {
		return nil // Kubernetes itself limits these fields
	}
	for _, sel := range []cue.Selector{cue.Str(name), cue.Str(name).Optional()} {
		if v := o.Schema.LookupPath(cue.MakePath(sel)); v.Exists() {
			return []origin{o.below(v, "."+cue.Str(name).String(), 0)}
		}
	}
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyString)); v.Exists() {
		return []origin{o.below(v, "[string]", 1)}
	}
	return nil
}

// elements returns the origins of the elements of a user's value.
func (o origin) elements() []origin {
	var out []origin
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyIndex)); v.Exists() {
		out = append(out, o.below(v, "[_]", 1))
	}
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyString)); v.Exists() {
		out = append(out, o.below(v, "[string]", 1))
	}
	if len(out) == 0 && o.Schema.IncompleteKind()&cue.StructKind != 0 {
		fields, err := o.Schema.Fields(cue.Optional(true))
		for err == nil && fields.Next() {
			out = append(out, o.below(fields.Value(), "."+fields.Selector().String(), 0))
		}
	}
	return anyOf(out)
}

// below returns the origin of a part of a user's value. Between them are the given number of
// lists and maps.
func (o origin) below(schema cue.Value, label string, within int) origin {
	return origin{UserValue: UserValue{schema, o.Limits}, path: o.path + label, within: o.within + within, alternative: o.alternative}
}
