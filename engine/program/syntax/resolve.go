package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// Each stands in a path for every field of a struct and every element of a list.
const Each = "*"

// A chain is an expression with the names that are selected of it, such as
// live.web.deployment.
type chain struct {
	base  ast.Expr
	steps []step
}

// A step is one selection of a chain. Its name is Each where it is not literal.
type step struct {
	node    ast.Node
	name    string
	literal bool
	// selected is true if it follows a dot, and is not an expression in brackets.
	selected bool
}

// asChain returns what an identifier, a selection or an index is as a chain, and false for any
// other node.
func asChain(n ast.Node) (chain, bool) {
	switch e := n.(type) {
	case *ast.Ident:
		return chainOf(e), true
	case *ast.SelectorExpr:
		return chainOf(e), true
	case *ast.IndexExpr:
		return chainOf(e), true
	}
	return chain{}, false
}

// chainOf takes an expression apart. An expression without selections is a chain without steps.
func chainOf(e ast.Expr) chain {
	var c chain
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.SelectorExpr:
			name, literal := literalLabel(x.Sel)
			c.steps, e = append(c.steps, stepOf(x.Sel, name, literal)), x.X
			c.steps[len(c.steps)-1].selected = true
			continue
		case *ast.IndexExpr:
			lit, ok := x.Index.(*ast.BasicLit)
			name, literal := "", ok && lit.Kind == token.STRING
			if literal {
				name, literal = literalLabel(lit)
			}
			c.steps, e = append(c.steps, stepOf(x.Index, name, literal)), x.X
			continue
		}
		c.base = e
		slices.Reverse(c.steps)
		return c
	}
}

func stepOf(node ast.Node, name string, literal bool) step {
	if !literal {
		name = Each
	}
	return step{node: node, name: name, literal: literal}
}

// root returns the name with which the chain begins, or nil.
func (c chain) root() *ast.Ident {
	id, _ := c.base.(*ast.Ident)
	return id
}

// names returns the names that are selected.
func (c chain) names() []string {
	out := make([]string, len(c.steps))
	for i, s := range c.steps {
		out[i] = s.name
	}
	return out
}

// literal returns the names up to the first that is not literal, and whether those are all.
func (c chain) literal() (names []string, all bool) {
	n := slices.IndexFunc(c.steps, func(s step) bool { return !s.literal })
	if n < 0 {
		return c.names(), true
	}
	return c.names()[:n], false
}

// A resolution is the result of resolving an expression by one step.
type resolution struct {
	// Member is the expression or field that the step leads to.
	Member
	// path is the rest of the path, to be found below the member.
	path []string
	// entered is true if the member is a field on the path, and false if a name refers to it.
	entered bool
	// alternative is true if the expression has this value or another one, and not both.
	alternative bool
	// conditional is true if the expression has this value only under a condition, or in a loop.
	conditional bool
	// key is true if the expression is the name of a field, and not its value.
	key bool
	// external is the reference to a value from outside the package, or nil.
	external *Reference
}

// resolve resolves an expression by one step, to find the value at a path below it. It follows
// names, selections, embeddings, loops, templates and their parameters. It stops at a literal and
// at a call that makes a new value; ends reports that it stopped there.
//
// All analyses of the text follow references with this function.
func (x *names) resolve(e ast.Node, path []string) (out []resolution, ends bool) {
	to := func(value ast.Expr) { out = append(out, resolution{Member: Member{value: value}, path: path}) }
	switch e := e.(type) {
	case *ast.Alias:
		to(e.Expr)
	case *ast.Comprehension:
		to(e.Value)
		out[0].conditional = true
	case *ast.ParenExpr:
		to(e.X)
	case *ast.UnaryExpr:
		if e.Op != token.MUL {
			return nil, len(path) == 0
		}
		to(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.AND && e.Op != token.OR {
			return nil, len(path) == 0
		}
		to(e.X)
		to(e.Y)
		for i := range out {
			out[i].alternative = e.Op == token.OR
		}
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		c, _ := asChain(e)
		return x.resolveChain(c, path), false
	case *ast.StructLit:
		return x.resolveStruct(e, path)
	case *ast.ListLit:
		return resolveList(e, path)
	case *ast.CallExpr:
		return resolveCall(e, path)
	default:
		return nil, len(path) == 0
	}
	return out, false
}

// resolveChain resolves a chain by one step.
func (x *names) resolveChain(c chain, path []string) []resolution {
	root := c.root()
	all := slices.Concat(c.names(), path)
	if root == nil {
		return []resolution{{Member: Member{value: c.base}, path: all}} // such as a list that is chosen from
	}
	switch scope := root.Scope.(type) {
	case *ast.ForClause:
		if scope.Key != nil && scope.Key.Name == root.Name {
			return []resolution{{Member: Member{value: scope.Source}, path: []string{Each}, key: true}}
		}
		return []resolution{{Member: Member{value: scope.Source}, path: slices.Concat([]string{Each}, all)}}
	case *ast.LetClause:
		return []resolution{{Member: Member{value: scope.Expr}, path: all}}
	}
	out := x.resolveField(c, root, path)
	if name := fieldName(root); !isRegular(name) && !atRoot(root) {
		// A template is given its parameters where it is used.
		for _, m := range x.labelled[name] {
			out = append(out, resolution{Member: m, path: all, alternative: true})
		}
	}
	return out
}

// resolveField resolves a chain that begins at a field of the package by one step.
func (x *names) resolveField(c chain, root *ast.Ident, path []string) (out []resolution) {
	all := slices.Concat(c.names(), path)
	add := func(m Member, path []string) { out = append(out, resolution{Member: m, path: path}) }
	external := func(from []string) bool {
		r, ok := externalReference(root, from, c.names())
		if ok {
			out = append(out, resolution{external: r, path: path})
		}
		return ok
	}
	from, rooted := x.rooted(root)
	if name := fieldName(root); name == "config" && atRoot(root) {
		from, rooted = []string{name}, true
	}
	switch {
	case rooted && external(from):
	case rooted && from[0] == "components":
		for _, m := range x.fields["components"] {
			add(m, slices.Concat(from[1:], all))
		}
	default:
		for _, m := range x.declared(root) {
			if from, ok := x.pathThrough(root, m, 0); !ok || !external(from) {
				add(m, all)
			}
		}
	}
	return out
}

// externalReference returns the reference to a value from outside the package, if a chain that
// starts at a path leads to such a value.
func externalReference(root *ast.Ident, from, names []string) (*Reference, bool) {
	at := slices.Concat(from, names)
	switch {
	case !slices.Contains([]string{"cr", "live", "inputs", "config"}, from[0]):
		return nil, false
	case from[0] == "inputs" && len(at) > 2 && !strings.HasPrefix(at[2], "object"):
		return nil, false // the package itself writes these fields of an input
	}
	return &Reference{Path: at, Position: fault.PositionAt(root.Pos())}, true
}

// resolveStruct resolves a path in a struct by one step. A struct that only embeds one value is
// equivalent to it.
func (x *names) resolveStruct(l *ast.StructLit, path []string) (out []resolution, ends bool) {
	if len(path) == 0 {
		if len(l.Elts) != 1 {
			return nil, true
		}
		embed, ok := l.Elts[0].(*ast.EmbedDecl)
		if !ok {
			return nil, true
		}
		return []resolution{{Member: Member{value: embed.Expr}}}, false
	}
	for _, d := range l.Elts {
		switch d := d.(type) {
		case *ast.Field:
			m := memberOf(d, nil)
			if m.mayBe(path[0]) {
				out = append(out, resolution{Member: m, path: path[1:], entered: true, alternative: path[0] == Each || m.kind != named})
			}
		case *ast.Comprehension:
			out = append(out, resolution{Member: Member{value: d.Value}, path: path, conditional: true})
		case *ast.EmbedDecl:
			out = append(out, resolution{Member: Member{value: d.Expr}, path: path})
		}
	}
	return out, false
}

// resolveList resolves a path in a list by one step.
func resolveList(l *ast.ListLit, path []string) (out []resolution, ends bool) {
	if len(path) == 0 || path[0] != Each {
		return nil, len(path) == 0
	}
	for _, e := range l.Elts {
		switch t := e.(type) {
		case *ast.Ellipsis:
			e = t.Type
		case *ast.Comprehension:
			e = t.Value
		}
		out = append(out, resolution{Member: Member{value: e}, path: path[1:], alternative: true})
	}
	return out, false
}

// kept are the functions whose result has the same parts as their first argument.
var kept = []string{
	"close", "list.Reverse", "list.Repeat", "list.Slice", "list.Take", "list.Drop", "list.Sort", "list.SortStable", "list.SortStrings",
}

// joined are the functions whose result combines all elements of their first argument.
var joined = []string{"and", "or", "list.Concat", "list.FlattenN"}

// resolveCall resolves a path in the result of a call by one step.
func resolveCall(e *ast.CallExpr, path []string) (out []resolution, ends bool) {
	name := function(e.Fun)
	switch {
	case len(path) == 0 || len(e.Args) == 0:
		return nil, true
	case slices.Contains(joined, name):
		path = slices.Concat([]string{Each}, path)
	case !slices.Contains(kept, name):
		return nil, true
	}
	return []resolution{{Member: Member{value: e.Args[0]}, path: path}}, false
}
