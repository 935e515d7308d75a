package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A Reading is a part of the values from outside that a package reads.
type Reading struct {
	// Path leads there from the root. Each stands for any field of a struct or element of a list.
	Path   []string
	Extent Extent
	// Imported is true if a definition of another package reads it of its argument. It may be written for
	// several kinds.
	Imported bool
}

// An Extent is how much of a value is read. A scalar is always read.
type Extent string

const (
	// Presence is that there is a struct or a list, and nothing in it.
	Presence Extent = "presence"
	// Members is which fields or how many elements there are.
	Members Extent = "members"
	// Whole is everything below.
	Whole Extent = "whole"
)

// Readings returns what the package reads from outside. That is more exact than References: of a list that
// a comprehension goes over, the fields of the elements that it selects are read, and no others.
func (x *Index) Readings() []Reading { return slices.Clone(x.readings) }

// readingsOf returns what some references read.
func (x *reader) readingsOf(all []found) []Reading {
	u := x.uses()
	var out []Reading
	for _, f := range all {
		at := slices.Concat(f.Path[:len(f.Path)-f.literal], f.chain.names())
		out = append(out, u.below(f.chain, at)...)
	}
	return out
}

// uses are the chains that stand where not all of their value is read. Each is known by the name that it
// begins with.
type uses struct {
	// sources are the chains that comprehensions go over.
	sources map[*ast.Ident]*ast.ForClause
	// extents are those of which only is asked whether there is something, or how much.
	extents map[*ast.Ident]Extent
	// elements are the chains that begin with the variable of a comprehension.
	elements map[*ast.ForClause][]chain
	// parameters are the chains that are arguments of definitions, with what these read.
	parameters map[*ast.Ident][]Reading
	// applications are the chains that do not begin with a name.
	applications []chain
}

// uses returns the uses in a package.
func (x *Index) uses() *uses {
	if x.imports.uses != nil {
		return x.imports.uses
	}
	u := &uses{
		sources: map[*ast.Ident]*ast.ForClause{}, extents: map[*ast.Ident]Extent{},
		elements: map[*ast.ForClause][]chain{}, parameters: map[*ast.Ident][]Reading{},
	}
	for _, f := range x.files {
		u.walk(x, f)
	}
	x.imports.uses = u
	for _, c := range u.applications { // which need all others
		u.apply(x, c)
	}
	return u
}

func (u *uses) walk(x *Index, n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if _, literal := literalLabel(n.Label); literal {
				u.walk(x, n.Value)
				return false
			}
		case *ast.ForClause:
			if root := valueOf(n.Source); root != nil {
				u.sources[root] = n
			}
			u.walk(x, n.Source)
			return false
		case *ast.CallExpr:
			if function(n.Fun) == "len" && len(n.Args) == 1 {
				u.count(n.Args[0])
			}
		case *ast.BinaryExpr:
			if chain, root := x.Presence(n); root != nil && valueOf(chain) == root {
				u.extents[root] = Presence
			}
		case ast.Expr:
			return !u.chain(x, n)
		}
		return true
	}, nil)
}

// chain records a chain that begins with a name, and reports whether it was one.
func (u *uses) chain(x *Index, e ast.Expr) bool {
	c, ok := asChain(e)
	if !ok {
		return false
	}
	if c.root() == nil {
		u.applications = append(u.applications, c)
		return false
	}
	for _, s := range c.steps {
		if !s.selected {
			u.walk(x, s.node)
		}
	}
	if clause, ok := c.root().Scope.(*ast.ForClause); ok && (!isNameOf(clause.Key, c.root()) || isNameOf(clause.Value, c.root())) {
		u.elements[clause] = append(u.elements[clause], c)
	}
	return true
}

func isNameOf(declared, id *ast.Ident) bool { return declared != nil && declared.Name == id.Name }

// count records what the argument of len does not read: the elements of a list, also if a
// comprehension makes the list of them.
func (u *uses) count(arg ast.Expr) {
	if root := valueOf(arg); root != nil {
		u.extents[root] = Members
	}
	l, ok := arg.(*ast.ListLit)
	if !ok {
		return
	}
	for _, e := range l.Elts {
		c, ok := e.(*ast.Comprehension)
		if !ok {
			continue
		}
		if s, ok := c.Value.(*ast.StructLit); ok && len(s.Elts) == 1 {
			if embed, ok := s.Elts[0].(*ast.EmbedDecl); ok && valueOf(embed.Expr) != nil {
				u.extents[valueOf(embed.Expr)] = Presence
			}
		}
	}
}

// valueOf returns the name at the beginning of the chain whose value an expression has, or nil: that of a chain, or
// of one that is the default beside an empty list or struct.
func valueOf(e ast.Expr) *ast.Ident { return valueChain(e).root() }

// valueChain returns the chain of valueOf.
func valueChain(e ast.Expr) chain {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return valueChain(e.X)
	case *ast.BinaryExpr:
		preferred, ok := e.X.(*ast.UnaryExpr)
		if e.Op == token.OR && ok && preferred.Op == token.MUL && isEmpty(e.Y) {
			return valueChain(preferred.X)
		}
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		return chainOf(e)
	}
	return chain{}
}

func isEmpty(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ListLit:
		return len(e.Elts) == 0
	case *ast.StructLit:
		return len(e.Elts) == 0
	}
	return false
}

// below returns what is read of the value of a chain that is at a path.
func (u *uses) below(c chain, at []string) []Reading {
	if extent, ok := u.extents[c.root()]; ok {
		return []Reading{{Path: at, Extent: extent}}
	}
	if parts, ok := u.parameters[c.root()]; ok {
		out := []Reading{{Path: at, Extent: Presence}}
		for _, p := range parts {
			out = append(out, Reading{slices.Concat(at, p.Path), p.Extent, p.Imported})
		}
		return out
	}
	clause, ok := u.sources[c.root()]
	if !ok {
		return []Reading{{Path: at, Extent: Whole}}
	}
	out := []Reading{{Path: at, Extent: Members}}
	for _, e := range u.elements[clause] {
		out = append(out, u.below(e, slices.Concat(at, []string{Each}, e.names()))...)
	}
	return out
}

// WhereRead returns where the text refers to a path from the root, or to most of it.
func (x *Index) WhereRead(path []string) fault.Position {
	best, at := 0, fault.Position{}
	for _, r := range x.references {
		n := 0
		for n < min(len(path), len(r.Path)) && path[n] == r.Path[n] {
			n++
		}
		if n > best {
			best, at = n, r.Position
		}
	}
	return at
}
