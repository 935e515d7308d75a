package compile

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// What a package does with its resource may decide by values as a schema does: in conditions, by what a disjunction or a function over
// lists makes of them. The references there count as read, also if a definition is given the values under another name.

// filledByEngine are the fields of a package that the engine fills.
var filledByEngine = map[string]bool{"cr": true, "live": true, "inputs": true}

// deciding returns the scope in which all that is referred to counts as read.
func (in scope) deciding() scope {
	in.decides = true
	return in
}

// assembled are the fields of a package that are made from others.
var assembled = map[string]bool{"components": true, "hooks": true, "status": true, "config": true, "requeueAfter": true}

// counting returns the scope in which nothing that is referred to counts as read.
func (in scope) counting() scope {
	in.decides = false
	return in
}

// follow looks at what is given by the names that are read.
func (r *schemaReader) follow() {
	for len(r.byName) > 0 { // it grows
		chain := r.byName[0]
		r.byName = r.byName[1:]
		for _, name := range []string{chain[0], chain[len(chain)-1]} {
			if r.followed[name] {
				continue
			}
			r.followed[name] = true
			for _, p := range r.given[name] {
				r.walk(p.in.deciding(), p.node)
			}
		}
	}
}

// variable looks at what a variable stands for that a chain begins with. Of the elements of what the engine fills in, it is the
// fields with the names that follow.
func (r *schemaReader) variable(chain []string, source passage) {
	if e, ok := source.node.(ast.Expr); ok && len(chain) > 1 && rootOf(e) != nil && neverFails(e) {
		r.read(chain[1:])
		return
	}
	if at := (variable{source.node, source.in}); !r.looked[at] {
		r.looked[at] = true
		r.walk(source.in.deciding(), source.node)
	}
}

// A variable is what one stands for, and where.
type variable struct {
	node ast.Node
	in   scope
}

// alternatives looks at a disjunction of structs or lists.
func (r *schemaReader) alternatives(in scope, n *ast.BinaryExpr) {
	r.read([]string{in.label})
	if !in.schema {
		r.labels(in, n.X, map[string]bool{})
		r.labels(in, n.Y, map[string]bool{})
	}
}

// operator looks at an operator outside of what decides, and reports whether to look at its operands as usual.
func (r *schemaReader) operator(in scope, n *ast.BinaryExpr) bool {
	switch n.Op {
	case token.OR:
		if !isPresence(n) && (!r.isScalar(in, n.X, 0) || !r.isScalar(in, n.Y, 0)) {
			r.alternatives(in, n)
		}
		for _, e := range []ast.Expr{n.X, n.Y} {
			if !neverFails(e) {
				r.walk(in.deciding(), e)
			}
		}
	case token.EQL, token.NEQ:
		_, left := n.X.(*ast.BottomLit)
		_, right := n.Y.(*ast.BottomLit)
		if (left || right) && !isPresence(n) {
			r.walk(in.deciding(), n.X)
			r.walk(in.deciding(), n.Y)
		}
	}
	return true
}

// isPresence reports whether it is decided by what is there, and by no value: in x != _|_, and in *x | y.
func isPresence(n *ast.BinaryExpr) bool {
	switch n.Op {
	case token.OR:
		marked, ok := n.X.(*ast.UnaryExpr)
		return ok && marked.Op == token.MUL && rootOf(marked.X) != nil && neverFails(marked.X)
	case token.EQL, token.NEQ:
		_, left := n.X.(*ast.BottomLit)
		_, right := n.Y.(*ast.BottomLit)
		return (left || right) && neverFails(n.X) && neverFails(n.Y)
	}
	return false
}

// neverFails reports whether no value of what the engine fills in makes an operand wrong: whether it is there is part of the
// shape.
func neverFails(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return neverFails(e.X)
	case *ast.UnaryExpr:
		return neverFails(e.X)
	case *ast.BasicLit, *ast.BottomLit:
		return true
	case *ast.Interpolation:
		return !slices.ContainsFunc(e.Elts, func(e ast.Expr) bool { return !neverFails(e) })
	case *ast.BinaryExpr:
		return e.Op == token.OR && neverFails(e.X) && neverFails(e.Y)
	case *ast.StructLit:
		return len(e.Elts) == 0
	case *ast.ListLit:
		return len(e.Elts) == 0
	case *ast.Ident:
		return filledByEngine[e.Name] || scalarTypes[e.Name] || e.Name == "_"
	case *ast.SelectorExpr:
		id := rootOf(e)
		return id != nil && filledByEngine[id.Name]
	case *ast.IndexExpr:
		_, literal := e.Index.(*ast.BasicLit)
		return literal && neverFails(e.X)
	}
	return false
}

// rootOf returns the name that a chain of selections begins with, or nil.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			if _, literal := x.Index.(*ast.BasicLit); !literal {
				return nil
			}
			e = x.X
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}

// labels reads the fields that an alternative has: by their values it is the one or not.
func (r *schemaReader) labels(in scope, e ast.Node, seen map[string]bool) {
	ast.Walk(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(n.Label)
			if err != nil {
				r.out.all = true // any field
				return false
			}
			r.read([]string{name})
		case *ast.ListLit:
			r.walk(in.deciding(), n)
			r.read([]string{in.label})
		case *ast.Ident:
			if seen[n.Name] {
				return false
			}
			seen[n.Name] = true
			for _, d := range r.declarationsOf(in.inst, n.Name) {
				r.labels(scope{inst: in.inst, file: d.file, label: in.label}, d.node, seen)
			}
		}
		return true
	}, nil)
}

// decidingCalls are the functions that constrain a list or a struct, and have an answer for one of types.
var decidingCalls = []string{"list.MatchN", "list.UniqueItems", "matchN", "matchIf", "and", "or"}

// call looks at a call outside of what decides, and reports whether to look at its arguments as usual.
func (r *schemaReader) call(in scope, n *ast.CallExpr) bool {
	name := calledName(in.file, n.Fun)
	if strings.HasSuffix(name, ".Validate") || slices.Contains(decidingCalls, name) {
		for _, arg := range n.Args {
			r.walk(in.deciding(), arg)
			r.labels(in, arg, map[string]bool{})
		}
		r.read([]string{in.label})
	}
	return true
}

// calledName returns the name of a function, such as list.Contains.
func calledName(f *ast.File, fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		id, ok := fun.X.(*ast.Ident)
		name, _, err := ast.LabelName(fun.Sel)
		if ok && err == nil && isBuiltin(importOf(f, id.Name)) {
			path := importOf(f, id.Name)
			return path[strings.LastIndex(path, "/")+1:] + "." + name
		}
	}
	return ""
}
