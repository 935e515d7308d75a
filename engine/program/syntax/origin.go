package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// An origin is what an expression stands for, as far as the text tells: a field of the spec or
// of the configuration, something that is written out, or what a function makes.
type origin struct {
	// Given is of a field: its schema. path is its path, and within says in how many lists
	// and maps it is.
	Given
	path   string
	within int
	// expr is what is written out.
	expr ast.Expr
	// made is how large what a function makes is, and each of its elements.
	made *Amount
	// alternative says that it is this or something else, and not all at once.
	alternative bool
}

// origins returns what stands at a path below an expression.
func (s *sizes) origins(e ast.Expr, path ...string) []origin {
	at := place{e, strings.Join(path, "\x00")}
	found, done := s.found[at]
	if done || e == nil || len(path) > maxTrace || len(s.found) > maxTraceSteps {
		return found // while it is looked for, what refers to itself stands for nothing
	}
	s.found[at] = nil
	var out []origin
	leads, ends := s.index.leads(e, path)
	if ends {
		out = s.end(e, path)
	}
	for _, l := range leads {
		of := s.led(l)
		if l.alternative {
			of = anyOf(of)
		}
		out = append(out, of...)
	}
	s.found[at] = distinct(out)
	return s.found[at]
}

// end returns what stands where the text leads no further.
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

// led returns what a lead stands for. Of live objects and inputs nothing is known.
func (s *sizes) led(l lead) []origin {
	if l.outside == nil {
		if l.key {
			return nil
		}
		return s.origins(l.value, l.path...)
	}
	root, ok := s.roots[l.outside.Path[0]]
	if !ok {
		return nil
	}
	out := []origin{{Given: root, path: l.outside.Path[0]}}
	for _, name := range slices.Concat(l.outside.Path[1:], l.path) {
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

// distinct returns each origin once: names that double each other would otherwise stand for
// more than there is memory for.
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

// anyOf returns origins of which only one counts.
func anyOf(of []origin) []origin {
	out := slices.Clone(of)
	for i := range out {
		out[i].alternative = true
	}
	return out
}

// field returns a field of what a user gives.
func (o origin) field(name string) []origin {
	if o.path == "cr" && name != "spec" || !isRegular(name) {
		return nil // what Kubernetes has limits for itself
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

// elements returns the elements of what a user gives.
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

// below returns a part of what a user gives, in so many more lists and maps.
func (o origin) below(schema cue.Value, label string, within int) origin {
	return origin{Given: Given{schema, o.Limits}, path: o.path + label, within: o.within + within, alternative: o.alternative}
}
