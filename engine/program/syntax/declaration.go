package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A Declaration is where the author wrote a component or a hook, excluding embedded definitions. The
// zero value has no position.
type Declaration struct {
	index  *Index
	bodies []Member
}

// DeclarationOf returns the declaration of a component. If its name is computed, and several loops
// may have computed it, the sources of its value identify the loop; nil stands for all loops.
func (x *Index) DeclarationOf(name string, sources func() []ast.Node) Declaration {
	if own := x.definitions[name]; len(own) > 0 {
		return Declaration{x, own}
	}
	computed := x.definitions[ComputedName]
	if len(computed) < 2 || sources == nil {
		return Declaration{x, computed}
	}
	from := sources()
	return Declaration{x, slices.DeleteFunc(slices.Clone(computed), func(m Member) bool { return !slices.Contains(from, ast.Node(m.field)) })}
}

// Holds reports whether a position is within the declaration.
func (d Declaration) Holds(at fault.Position) bool {
	return slices.ContainsFunc(d.bodies, func(m Member) bool { return m.field != nil && spanOf(m.field).holds(at) })
}

// Descend follows a path through the declaration. It returns the position of the last field that
// the declaration has, and the number of names up to it. The position is zero if the declaration
// is empty.
func (d Declaration) Descend(path []string) (at fault.Position, depth int) {
	within := d.bodies
	for _, m := range within {
		if m.field != nil {
			at = m.Position()
			break
		}
	}
	for _, name := range path {
		next := membersNamed(within, name)
		if len(next) == 0 {
			break
		}
		at, within, depth = next[0].Position(), next, depth+1
	}
	return at, depth
}

// FieldsAt returns the fields at a path of the declaration.
func (d Declaration) FieldsAt(path ...string) []*ast.Field {
	within := d.bodies
	for _, name := range path {
		within = membersNamed(within, name)
	}
	var out []*ast.Field
	for _, m := range within {
		out = append(out, m.field)
	}
	return out
}

// membersNamed returns the members with a name below others.
func membersNamed(within []Member, name string) []Member {
	var out []Member
	for _, m := range within {
		for _, d := range m.Members() {
			if d.kind == named && d.name == name {
				out = append(out, d)
			}
		}
	}
	return out
}

// FromData reports whether an evaluation decides that the component exists.
func (d Declaration) FromData() bool {
	return !slices.ContainsFunc(d.bodies, func(m Member) bool { return m.field != nil && !d.index.fromData[m.field] })
}

// FromData reports whether an evaluation decides the names of some fields, and whether it
// decides that any of them exists.
func (x *Index) FromData(fields []*ast.Field) (computed, fromData bool) {
	literal := slices.ContainsFunc(fields, func(f *ast.Field) bool { return kindOf(f) == named })
	always := slices.ContainsFunc(fields, func(f *ast.Field) bool { return !x.fromData[f] })
	return !literal, !always
}

// Parameters returns the positions at which embedded templates declare a part of the component,
// outside its own definition.
func (d Declaration) Parameters(part string) []fault.Position {
	if d.index == nil {
		return nil
	}
	declared, _, _ := d.index.membersOf(d.bodies, part)
	var out []fault.Position
	for _, m := range declared {
		if at := m.Position(); !d.Holds(at) {
			out = append(out, at)
		}
	}
	return out
}

// DefinitionsOf returns the definitions of the package that the value at a path is unified with, as far as the text shows.
func (x *names) DefinitionsOf(path []string) []string {
	var out []string
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			if e.Op == token.AND {
				visit(e.X)
				visit(e.Y)
			}
		case *ast.ParenExpr:
			visit(e.X)
		case *ast.Alias:
			visit(e.Expr)
		case *ast.StructLit:
			for _, d := range e.Elts {
				if embedded, is := d.(*ast.EmbedDecl); is {
					visit(embedded.Expr)
				}
			}
		case *ast.Ident:
			if strings.HasPrefix(e.Name, "#") {
				out = append(out, e.Name)
			}
		}
	}
	for _, m := range x.at(path) {
		visit(m.value)
	}
	return out
}
