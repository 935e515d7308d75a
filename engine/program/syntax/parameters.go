package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// A package may hand a value from outside to a definition, as in (#Ready & {object: live.web.d}).ready. The definition then
// reads no more of it than its text says of its parameter, here object.

// An application is a definition with arguments, of which a field is selected.
type application struct {
	// definitions are the literal structs that make up the definition, and arguments those beside it.
	definitions, arguments []literalStruct
}

// A literalStruct is a struct in the text of a package.
type literalStruct struct {
	*ast.StructLit

	in *Index
}

// apply records what the definition in a chain such as (#Ready & {object: live.web.d}).ready reads of its arguments.
func (u *uses) apply(x *Index, c chain) {
	if len(c.steps) == 0 || !c.steps[0].literal || !isRegular(c.steps[0].name) {
		return
	}
	a := &application{}
	if !a.operand(x, c.base) {
		return
	}
	imported := slices.ContainsFunc(a.definitions, func(s literalStruct) bool { return s.in != x })
	for _, s := range a.arguments {
		for _, d := range s.Elts {
			f, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			name, _ := literalLabel(f.Label)
			root := chainRoot(f.Value)
			if root == nil || !isRegular(name) || name == c.steps[0].name {
				continue
			}
			if readings, ok := a.readings(name); ok {
				for i := range readings {
					readings[i].Imported = imported
				}
				u.parameters[root] = readings
			}
		}
	}
}

// chainRoot returns the name with which an expression begins that is a chain, or nil.
func chainRoot(e ast.Expr) *ast.Ident {
	c, ok := asChain(e)
	if !ok {
		return nil
	}
	return c.root()
}

// operand adds the structs of a unification of definitions and arguments. It reports whether the text shows all of
// them.
func (a *application) operand(x *Index, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return a.operand(x, e.X)
	case *ast.BinaryExpr:
		return e.Op == token.AND && a.operand(x, e.X) && a.operand(x, e.Y)
	case *ast.StructLit:
		a.arguments = append(a.arguments, literalStruct{e, x})
		return showsNames(e, func(*ast.EmbedDecl) bool { return false })
	default:
		return a.definition(x, e, 0)
	}
}

// definition adds the structs of a definition, and reports whether the text shows all of them.
func (a *application) definition(x *Index, e ast.Expr, depth int) bool {
	if depth > maxAliases {
		return false
	}
	var at []Member
	switch e := e.(type) {
	case *ast.StructLit:
		return a.structure(x, e, depth)
	case *ast.ParenExpr:
		return a.definition(x, e.X, depth)
	case *ast.Ident:
		if !atRoot(e) || isRegular(e.Name) || fieldName(e) != e.Name {
			return false
		}
		at = x.fields[e.Name]
	case *ast.SelectorExpr:
		in, name := x.selected(e)
		if in == nil {
			return false
		}
		x, at = in, in.fields[name]
	}
	for _, m := range at {
		if len(m.guards) > 0 || m.field == nil || m.field.Alias != nil || !a.definition(x, m.value, depth+1) {
			return false
		}
	}
	return len(at) > 0
}

// structure adds a literal struct and those that it embeds. It reports whether the text shows all of its
// fields, by their names.
func (a *application) structure(x *Index, s *ast.StructLit, depth int) bool {
	if len(a.definitions) > maxFollowed {
		return false
	}
	a.definitions = append(a.definitions, literalStruct{s, x})
	return showsNames(s, func(d *ast.EmbedDecl) bool { return a.definition(x, d.Expr, depth+1) })
}

// showsNames reports whether a literal struct shows the names of all of its fields, and no other name refers to them. A
// function decides about what is embedded.
func showsNames(s *ast.StructLit, embedded func(d *ast.EmbedDecl) bool) bool {
	for _, d := range s.Elts {
		switch d := d.(type) {
		case *ast.Field:
			if _, literal := literalLabel(d.Label); !literal || hasAlias(d) {
				return false
			}
		case *ast.EmbedDecl:
			if !embedded(d) {
				return false
			}
		case *ast.Ellipsis:
			if d.Type != nil {
				return false
			}
		case *ast.LetClause, *ast.Attribute, *ast.CommentGroup:
		default:
			return false
		}
	}
	return true
}

// hasAlias reports whether a field has another name beside its own, by which other fields may refer to it.
func hasAlias(f *ast.Field) bool {
	_, before := f.Label.(*ast.Alias)
	_, value := f.Value.(*ast.Alias)
	return before || value || f.Alias != nil
}

// values returns the values that a struct declares for a field.
func (s literalStruct) values(name string) []ast.Expr {
	var out []ast.Expr
	for _, d := range s.Elts {
		if f, ok := d.(*ast.Field); ok {
			if label, _ := literalLabel(f.Label); label == name {
				out = append(out, f.Value)
			}
		}
	}
	return out
}

// readings returns what is read of a parameter, and whether that is known.
func (a *application) readings(parameter string) (out []Reading, known bool) {
	given := 0
	for _, s := range a.arguments {
		given += len(s.values(parameter))
	}
	if given != 1 {
		return nil, false // the arguments have to agree
	}
	for _, s := range a.definitions {
		for _, value := range s.values(parameter) {
			r := typeReader{}
			part := r.of(s.in, value, true)
			if r.refers || part.whole || part.holdsClosed() {
				return nil, false
			}
			out = append(out, part.readings(nil)...)
		}
	}
	names, declared := a.namesFor(parameter)
	for _, s := range slices.Concat(a.definitions, a.arguments) {
		out = append(out, s.readings(names, declared)...)
	}
	whole := func(r Reading) bool { return len(r.Path) == 0 && r.Extent == Whole }
	return out, !slices.ContainsFunc(out, whole)
}

// namesFor returns the names of a parameter and of hidden fields that stand for a part of it, with the paths of these
// parts, and the names with which the declarations of these hidden fields begin.
func (a *application) namesFor(parameter string) (names map[string][]string, declared map[*ast.Ident]bool) {
	names, declared = map[string][]string{parameter: nil}, map[*ast.Ident]bool{}
	values := map[string][]ast.Expr{}
	from := map[string]literalStruct{}
	for _, s := range slices.Concat(a.definitions, a.arguments) {
		for _, d := range s.Elts {
			f, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			if name, _ := literalLabel(f.Label); !isRegular(name) && !isDefinition(name) && !isTop(f.Value) {
				values[name], from[name] = append(values[name], f.Value), s
			}
		}
	}
	for name, all := range values {
		c := valueChain(all[0])
		if root := c.root(); len(all) == 1 && len(c.steps) > 0 && root != nil && root.Name == parameter && root.Scope == from[name].StructLit {
			names[name], declared[root] = c.names(), true
		}
	}
	return names, declared
}

// readings returns what a struct reads by some names of its fields, each of which stands for the part of a value that
// is at a path.
func (s literalStruct) readings(names map[string][]string, declared map[*ast.Ident]bool) []Reading {
	var out []Reading
	eachChain(s.StructLit, func(c chain) {
		root := c.root()
		at, known := names[root.Name]
		path := slices.Concat(at, c.names())
		switch {
		case !known || root.Scope != s.StructLit:
		case declared[root]:
			out = append(out, Reading{Path: path, Extent: Presence})
		default:
			out = append(out, s.in.uses().below(c, path)...)
		}
	})
	return out
}

// eachChain calls a function for each chain in a piece of text that begins with a name.
func eachChain(n ast.Node, f func(c chain)) {
	ast.Walk(n, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			if _, literal := literalLabel(field.Label); literal {
				eachChain(field.Value, f)
				return false
			}
		}
		c, ok := asChain(n)
		if !ok || c.root() == nil {
			return true
		}
		for _, step := range c.steps {
			if !step.selected {
				eachChain(step.node, f)
			}
		}
		f(c)
		return false
	}, nil)
}
