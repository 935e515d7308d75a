package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// references collects the references in a piece of a package, each with the
// conditions under which it is evaluated.
type references struct {
	index *Index
	// follow is true if names of other root fields are followed to their values, so that an
	// alias hides nothing.
	follow bool
	found  []found
	// parameters is true if the name of a hidden field or a definition is also followed to all
	// fields with that label: they set the parameters of a template.
	parameters bool
	// skip reports whether a node is left out; nil leaves nothing out.
	skip func(ast.Node) bool
	// clausesRead are the clauses that were read, with whether they depend on more than the
	// custom resource; nil does not record that.
	clausesRead map[ast.Clause]bool
	following   map[string]bool
	// within are the values that enclose the place that is being walked.
	within map[ast.Node]bool
	// beyond is true if not every name was followed under each of its conditions.
	beyond bool
	// surroundings of the place that is being walked.
	surroundings
	// places are where an evaluation has the fields of a struct, as CUE.
	places map[*ast.StructLit]string
}

// surroundings describe a place in the text.
type surroundings struct {
	// path is where an evaluation has the value that stands there, as CUE, or "".
	path string
	// clauses are the clauses of the comprehensions around it, rewritten to mean the same
	// at the root of the package. A clause that cannot be rewritten is left out.
	clauses []string
	// guards are the conditions among them, as the author wrote them.
	guards []string
	// beyondCR is true if one of them depends on more than the custom resource.
	beyondCR bool
	// use is where the component refers to the place, if the place is not in the component.
	use fault.Position
}

// found is a reference and its surroundings.
type found struct {
	Reference
	surroundings
	// chain is how it is written; literal counts the names behind the first that are
	// literal.
	chain   chain
	literal int
}

func newReferences(x *Index) *references {
	return &references{index: x, following: map[string]bool{}, within: map[ast.Node]bool{}, places: map[*ast.StructLit]string{}}
}

// all returns the references that were found.
func (r *references) all() []Reference {
	var out []Reference
	for _, f := range r.found {
		out = append(out, f.Reference)
	}
	return out
}

// maxFollowed bounds how many names are followed from one component. The edges of a
// component beyond the limit have no conditions.
const maxFollowed = 2_000

// member walks a member with what guards it.
func (r *references) member(m Member) {
	defer r.leave(r.surroundings)
	for _, g := range m.guards {
		r.clause(g)
	}
	r.body(m)
}

// leave returns to the surroundings of a place.
func (r *references) leave(to surroundings) { r.surroundings = to }

// body walks the label and the value of a member.
func (r *references) body(m Member) {
	if m.field != nil {
		if _, literal := literalLabel(m.field.Label); !literal {
			r.inside(m.field.Label)
		}
		r.path = r.pathTo(m)
	}
	if m.value != nil {
		r.walk(m.value)
	}
}

// pathTo returns where an evaluation has a field of the value that is being walked.
func (r *references) pathTo(m Member) string {
	name, literal := literalLabel(m.field.Label)
	switch {
	case r.path == "":
		return ""
	case literal:
		return r.path + selection(name)
	}
	if name, ok := r.nameOf(m); ok {
		return r.path + "[" + name + "]"
	}
	return ""
}

// selection returns a name as what selects it.
func selection(name string) string {
	if isRegular(name) {
		return "." + fmt.Sprintf("%q", name)
	}
	return "." + name
}

// nameOf returns the name of a field as CUE at the root of the package.
func (r *references) nameOf(m Member) (string, bool) {
	if m.name != "" {
		return fmt.Sprintf("%q", m.name), true
	}
	if m.field == nil || m.kind == pattern {
		return "", false
	}
	switch label := unaliased(m.field.Label).(type) {
	case *ast.ParenExpr:
		return r.atRoot(label.X, 0)
	case *ast.Interpolation:
		return r.atRoot(label, 0)
	}
	return "", false
}

// inside walks operands and arguments: an evaluation does not have them at the path of the
// expression.
func (r *references) inside(parts ...ast.Node) {
	defer r.leave(r.surroundings)
	r.path = ""
	for _, part := range parts {
		r.walk(part)
	}
}

func (r *references) walk(n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		if r.skip != nil && r.skip(n) {
			return false
		}
		switch n := n.(type) {
		case *ast.Field:
			// A literal label is a name, not a reference.
			r.member(Member{field: n, value: n.Value, kind: kindOf(n)})
			return false
		case *ast.StructLit:
			r.places[n] = r.path
		case *ast.Comprehension:
			r.comprehension(n)
			return false
		case *ast.LetClause:
			return !r.follow // walked where it is used
		case *ast.BinaryExpr:
			if n.Op != token.AND {
				r.inside(n.X, n.Y)
			}
			return n.Op == token.AND
		case *ast.UnaryExpr:
			r.inside(n.X)
			return false
		case *ast.CallExpr:
			r.inside(n.Fun)
			r.inside(nodes(n.Args)...)
			return false
		case *ast.ListLit:
			r.inside(nodes(n.Elts)...)
			return false
		case *ast.Interpolation:
			r.inside(nodes(n.Elts)...)
			return false
		case ast.Expr:
			return !r.chain(n)
		}
		return true
	}, nil)
}

func nodes(all []ast.Expr) []ast.Node {
	out := make([]ast.Node, len(all))
	for i, e := range all {
		out[i] = e
	}
	return out
}

// comprehension walks what a comprehension adds, and its clauses.
func (r *references) comprehension(c *ast.Comprehension) {
	outer := r.surroundings
	defer r.leave(outer)
	for _, clause := range c.Clauses {
		r.clause(clause)
	}
	r.walk(c.Value)
	if c.Fallback != nil {
		r.surroundings = outer
		r.walk(c.Fallback.Body)
	}
}

// clause walks a clause, and adds it to those around what comes after it.
func (r *references) clause(c ast.Clause) {
	if r.skip != nil && r.skip(c) {
		return
	}
	r.beyondCR = r.beyondCR || r.clausesRead != nil && r.restsOnMore(c)
	switch c := c.(type) {
	case *ast.IfClause:
		r.inside(c.Condition)
		if condition, ok := r.atRoot(c.Condition, 0); ok {
			r.clauses = append(slices.Clip(r.clauses), "if "+condition)
			r.guards = append(slices.Clip(r.guards), Source(c.Condition))
		}
	case *ast.ForClause:
		r.inside(c.Source)
		if source, ok := r.atRoot(c.Source, 0); ok {
			key := "_"
			if c.Key != nil {
				key = variable(c.Key)
			}
			r.clauses = append(slices.Clip(r.clauses), fmt.Sprintf("for %s, %s in %s", key, variable(c.Value), source))
			r.guards = append(slices.Clip(r.guards), forText(c))
		}
	case *ast.LetClause:
		r.inside(c.Expr)
	default:
		r.inside(c)
	}
}

// restsOnMore reports whether a clause rests on more than the custom resource.
func (r *references) restsOnMore(c ast.Clause) bool {
	if more, known := r.clausesRead[c]; known {
		return more
	}
	r.clausesRead[c] = true // while it is looked at
	inside := newReferences(r.index)
	inside.follow = true
	inside.walk(c)
	r.clausesRead[c] = inside.beyond || inside.leadsBeyondCR()
	return r.clausesRead[c]
}

// leadsBeyondCR reports whether a reference leads to anything but the custom resource.
func (r *references) leadsBeyondCR() bool {
	return slices.ContainsFunc(r.found, func(f found) bool { return f.Path[0] != "cr" })
}

// chain records a chain of selections, follows the name at its start, and reports
// whether it was one.
func (r *references) chain(e ast.Expr) bool {
	c := chainOf(e)
	root := c.root()
	if root == nil {
		return false
	}
	for _, s := range slices.Backward(c.steps) {
		if !s.selected {
			r.inside(s.node)
		}
	}
	sels, _ := c.literal()
	if path, ok := r.index.pathOf(root, 0); ok {
		if !r.follow && len(sels) == 0 && !slices.Contains(roots, fieldName(root)) {
			return true // another name, recorded where it is written
		}
		path = slices.Concat(path, sels)
		r.found = append(r.found, found{Reference{Path: path, Position: fault.PositionAt(root.Pos())}, r.surroundings, c, len(sels)})
		if r.follow && len(path) > 1 && path[0] == "components" {
			r.declarations(fault.PositionAt(root.Pos()), r.index.fields["components"], path[1:], "components")
		}
		return true
	}
	if r.follow {
		at := ""
		if atRoot(root) {
			at = fieldName(root)
		}
		r.declarations(fault.PositionAt(root.Pos()), r.index.declared(root), sels, at)
	}
	if name := fieldName(root); r.parameters && !isRegular(name) {
		r.declarations(fault.PositionAt(root.Pos()), r.index.labelled[name], sels, "")
	}
	return true
}

// declared returns what an identifier that leads to none of the roots stands for.
func (x *names) declared(id *ast.Ident) []Member {
	switch n := id.Node.(type) {
	case *ast.LetClause:
		return []Member{{value: n.Expr}}
	case *ast.Alias:
		return []Member{{value: n.Expr}}
	case *ast.ImportSpec:
		return nil
	}
	if atRoot(id) {
		return x.fields[fieldName(id)]
	}
	if _, ok := id.Scope.(*ast.StructLit); !ok {
		return nil // a variable of a comprehension, which is walked itself
	}
	switch n := id.Node.(type) {
	case *ast.Field:
		return []Member{{field: n, value: n.Value}}
	case ast.Expr:
		return []Member{{value: n}}
	}
	return nil
}

// declarations walks what a path below some declarations stands for. Where the text shows
// all of them, it walks only what the path leads to: a reference to one field of a struct
// does not depend on the references in its other fields.
func (r *references) declarations(from fault.Position, at []Member, path []string, place string) {
	defer r.leave(r.surroundings)
	if r.use.IsZero() {
		r.use = from
	}
	for len(path) > 0 {
		next, exact := narrowed(at, path[0])
		if !exact {
			break
		}
		if place != "" {
			place += selection(path[0])
		}
		at, path = next, path[1:]
	}
	if r.path == "" {
		r.path = place // otherwise it is a template, which the evaluation instantiates here
	}
	here := r.surroundings
	for _, m := range at {
		if m.value == nil || !r.first(m) {
			continue
		}
		for _, g := range m.guards {
			r.clause(g)
		}
		if m.field != nil {
			if _, literal := literalLabel(m.field.Label); !literal {
				r.inside(m.field.Label)
			}
		}
		r.within[m.value] = true
		r.walk(m.value)
		delete(r.within, m.value)
		r.surroundings = here
	}
}

// first reports whether a value is walked for the first time under the present conditions.
func (r *references) first(m Member) bool {
	if r.within[m.value] {
		r.beyond = true // it refers to itself, perhaps under other conditions
		return false
	}
	key := fmt.Sprintf("%p %s %s", m.value, r.path, strings.Join(r.clauses, " "))
	if r.following[key] {
		return false
	}
	if len(r.following) >= maxFollowed {
		r.beyond = true
		key = fmt.Sprintf("%p", m.value) // once at least
	}
	again := r.following[key]
	r.following[key] = true
	return !again
}

// narrowed returns the declarations of a name below others, also those that an evaluation
// may give the name, and whether the text shows all of them. What is embedded may be given
// parameters beside it, so that no part of it is all.
func narrowed(at []Member, name string) (next []Member, exact bool) {
	exact = true
	for _, m := range at {
		eachMember(m.value, m.guards, func(d Member) {
			switch {
			case d.kind == embedded:
				exact = false
			case d.mayBe(name):
				next = append(next, d)
			}
		})
	}
	return next, exact && len(next) > 0
}
