package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A memberKind is the form in which a member is declared.
type memberKind int

const (
	named    memberKind = iota // a field with a literal name
	dynamic                    // a field whose name is computed
	pattern                    // a constraint on fields
	embedded                   // anything else: its members are not written here
)

// A Member is something that is declared directly in a value.
type Member struct {
	kind  memberKind
	name  string // of a named one
	field *ast.Field
	value ast.Expr
	// guards are the clauses of the comprehensions around it.
	guards []ast.Clause
}

// Name returns the literal name of a field, or "".
func (m Member) Name() string { return m.name }

// IsRegular reports whether it is a field whose name is literal and neither hidden nor a
// definition.
func (m Member) IsRegular() bool { return m.name != "" && isRegular(m.name) }

// Position returns where the label of a field is written, or else the value.
func (m Member) Position() fault.Position {
	switch {
	case m.field != nil:
		return fault.PositionAt(m.field.Label.Pos())
	case m.value != nil:
		return fault.PositionAt(m.value.Pos())
	}
	return fault.Position{}
}

// Members returns the members declared in the value of a member, without its guards.
func (m Member) Members() []Member {
	var out []Member
	eachMember(m.value, nil, func(d Member) { out = append(out, d) })
	return out
}

// eachMember calls f for each member of a value, also within comprehensions,
// unifications and disjunctions.
func eachMember(v ast.Node, guards []ast.Clause, f func(Member)) {
	switch v := v.(type) {
	case *ast.StructLit:
		eachDecl(v.Elts, guards, f)
	case *ast.BinaryExpr:
		if v.Op != token.AND && v.Op != token.OR {
			f(Member{kind: embedded, value: v, guards: guards})
			return
		}
		eachMember(v.X, guards, f)
		eachMember(v.Y, guards, f)
	case *ast.UnaryExpr:
		eachMember(v.X, guards, f)
	case *ast.ParenExpr:
		eachMember(v.X, guards, f)
	case *ast.Alias:
		eachMember(v.Expr, guards, f)
	case ast.Expr:
		f(Member{kind: embedded, value: v, guards: guards})
	}
}

// eachDecl calls f for each member that declarations make.
func eachDecl(decls []ast.Decl, guards []ast.Clause, f func(Member)) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			f(memberOf(d, guards))
		case *ast.Comprehension:
			eachMember(d.Value, slices.Concat(guards, d.Clauses), f)
		case *ast.EmbedDecl:
			eachMember(d.Expr, guards, f)
		case *ast.Ellipsis:
			f(Member{kind: embedded, value: d.Type, guards: guards})
		}
	}
}

// memberOf returns a field as a member.
func memberOf(f *ast.Field, guards []ast.Clause) Member {
	name, _ := literalLabel(f.Label)
	return Member{kind: kindOf(f), name: name, field: f, value: f.Value, guards: guards}
}

// mayBe reports whether a field may have a given name, or Each. A computed name may be any that
// begins with the letters in its text.
func (m Member) mayBe(name string) bool {
	switch {
	case m.kind == named:
		return m.name == name || name == Each && isRegular(m.name)
	case m.kind != dynamic || name == Each:
		return m.kind != embedded
	}
	label, ok := unaliased(m.field.Label).(*ast.Interpolation)
	if !ok || len(label.Elts) == 0 {
		return true
	}
	first, ok := label.Elts[0].(*ast.BasicLit)
	if !ok {
		return true
	}
	letters, ok := strings.CutPrefix(strings.TrimSuffix(first.Value, `\(`), `"`)
	return !ok || strings.ContainsRune(letters, '\\') || strings.HasPrefix(name, letters)
}

// kindOf returns the kind of a field as a member.
func kindOf(f *ast.Field) memberKind {
	if _, ok := literalLabel(f.Label); ok {
		return named
	}
	if _, ok := unaliased(f.Label).(*ast.ListLit); ok {
		return pattern
	}
	return dynamic
}

// literalLabel returns the name of a label that is written out.
func literalLabel(l ast.Node) (string, bool) {
	switch l := unaliased(l).(type) {
	case *ast.Ident:
		return l.Name, true
	case *ast.BasicLit:
		if l.Kind == token.STRING {
			s, err := literal.Unquote(l.Value)
			return s, err == nil
		}
	}
	return "", false
}

// unaliased returns a label or value without the alias in front of it.
func unaliased(n ast.Node) ast.Node {
	if a, ok := n.(*ast.Alias); ok {
		return a.Expr
	}
	return n
}
