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
	// selected says that it follows a dot, and is no expression in brackets.
	selected bool
}

// chainOf takes an expression apart. One that selects nothing is a chain without steps.
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

// A lead is one step from an expression to what it stands for.
type lead struct {
	// Member is what is written there.
	Member
	// path is what of the path is still to be looked for below it.
	path []string
	// entered says that it is a field on the path, and not what a name refers to.
	entered bool
	// alternative says that the expression is this or something else, and not all at once.
	alternative bool
	// key says that only the names of the fields are of interest.
	key bool
	// outside is the reference to what is not written in the package, or nil.
	outside *Reference
}

// leads returns where an expression leads, one step on, if it is asked for what is at a path
// below it: along names, selections, embeddings, loops, templates and their parameters. It
// ends at an expression that is what was asked for, and at a call that makes something new.
//
// It is the one place that knows how a piece of text refers to another one.
func (x *Index) leads(e ast.Node, path []string) (out []lead, ends bool) {
	to := func(value ast.Expr) { out = append(out, lead{Member: Member{value: value}, path: path}) }
	switch e := e.(type) {
	case *ast.Alias:
		to(e.Expr)
	case *ast.Comprehension:
		to(e.Value)
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
		return x.chainLeads(chainOf(e.(ast.Expr)), path), false
	case *ast.StructLit:
		return x.structLeads(e, path)
	case *ast.ListLit:
		return listLeads(e, path)
	case *ast.CallExpr:
		return callLeads(e, path)
	default:
		return nil, len(path) == 0
	}
	return out, false
}

// chainLeads returns where a chain leads.
func (x *Index) chainLeads(c chain, path []string) (out []lead) {
	root := c.root()
	all := slices.Concat(c.names(), path)
	if root == nil {
		return []lead{{Member: Member{value: c.base}, path: all}} // such as a list that is chosen from
	}
	switch scope := root.Scope.(type) {
	case *ast.ForClause:
		if scope.Key != nil && scope.Key.Name == root.Name {
			return []lead{{Member: Member{value: scope.Source}, path: []string{Each}, key: true}}
		}
		return []lead{{Member: Member{value: scope.Source}, path: slices.Concat([]string{Each}, all)}}
	case *ast.LetClause:
		return []lead{{Member: Member{value: scope.Expr}, path: all}}
	}
	add := func(m Member, path []string) { out = append(out, lead{Member: m, path: path}) }
	outside := func(from []string) bool {
		r, ok := outsideOf(root, from, c.names())
		if ok {
			out = append(out, lead{outside: r, path: path})
		}
		return ok
	}
	from, rooted := x.rooted(root)
	if name := fieldName(root); name == "config" && atRoot(root) {
		from, rooted = []string{name}, true
	}
	switch {
	case rooted && outside(from):
	case rooted && from[0] == "components":
		for _, m := range x.fields["components"] {
			add(m, slices.Concat(from[1:], all))
		}
	default:
		for _, m := range x.declared(root) {
			if from, ok := x.pathThrough(root, m, 0); !ok || !outside(from) {
				add(m, all)
			}
		}
	}
	if name := fieldName(root); !isRegular(name) && !atRoot(root) {
		// A template is given its parameters where it is used.
		for _, m := range x.labelled[name] {
			add(m, all)
			out[len(out)-1].alternative = true
		}
	}
	return out
}

// outsideOf returns the reference to what is not written in the package, if a chain that
// starts from a path leads to that.
func outsideOf(root *ast.Ident, from, names []string) (*Reference, bool) {
	at := slices.Concat(from, names)
	switch {
	case !slices.Contains([]string{"cr", "live", "inputs", "config"}, from[0]):
		return nil, false
	case from[0] == "inputs" && len(at) > 2 && !strings.HasPrefix(at[2], "object"):
		return nil, false // what the package itself says of the input
	}
	return &Reference{Path: at, Position: fault.At(root.Pos())}, true
}

// structLeads returns where a path leads in a struct. One that only embeds something is that.
func (x *Index) structLeads(l *ast.StructLit, path []string) (out []lead, ends bool) {
	if len(path) == 0 {
		if len(l.Elts) != 1 {
			return nil, true
		}
		embed, ok := l.Elts[0].(*ast.EmbedDecl)
		if !ok {
			return nil, true
		}
		return []lead{{Member: Member{value: embed.Expr}}}, false
	}
	for _, d := range l.Elts {
		switch d := d.(type) {
		case *ast.Field:
			m := memberOf(d, nil)
			if m.mayBe(path[0]) {
				out = append(out, lead{Member: m, path: path[1:], entered: true, alternative: path[0] == Each || m.kind != named})
			}
		case *ast.Comprehension:
			out = append(out, lead{Member: Member{value: d.Value}, path: path})
		case *ast.EmbedDecl:
			out = append(out, lead{Member: Member{value: d.Expr}, path: path})
		}
	}
	return out, false
}

// listLeads returns where a path leads in a list.
func listLeads(l *ast.ListLit, path []string) (out []lead, ends bool) {
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
		out = append(out, lead{Member: Member{value: e}, path: path[1:], alternative: true})
	}
	return out, false
}

// kept are the functions that make of their first argument something of the same parts.
var kept = []string{
	"close", "list.Reverse", "list.Repeat", "list.Slice", "list.Take", "list.Drop", "list.Sort", "list.SortStable", "list.SortStrings",
}

// joined are the functions that make one of all the elements of their first argument.
var joined = []string{"and", "or", "list.Concat", "list.FlattenN"}

// callLeads returns where a path leads in what a function makes.
func callLeads(e *ast.CallExpr, path []string) (out []lead, ends bool) {
	name := function(e.Fun)
	switch {
	case len(path) == 0 || len(e.Args) == 0:
		return nil, true
	case slices.Contains(joined, name):
		path = slices.Concat([]string{Each}, path)
	case !slices.Contains(kept, name):
		return nil, true
	}
	return []lead{{Member: Member{value: e.Args[0]}, path: path}}, false
}
