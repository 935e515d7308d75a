package crd

import (
	"cmp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// addHidden makes rules of the hidden fields of literals that have to be true. What is no such field is left to CUE.
func (g *generator) addHidden(at location, literals []*ast.StructLit) {
	for _, l := range literals {
		for _, e := range l.Elts {
			f, ok := e.(*ast.Field)
			if !ok || hiddenName(f) == "" || f.Constraint == token.OPTION { // which nobody makes regular
				continue
			}
			leave := func() {
				g.inCUE = append(g.inCUE, CUEOnlyConstraint{Path: at.path, Text: ruleMessage(sourceOf(f)), Why: notTranslated, pos: f.Pos()})
			}
			condition, ok := hasToBeTrue(f.Value)
			switch {
			case dependencyOf(f.Value, at).name == "":
				continue
			case !ok && !mayRefuse(f.Value) && !isDeclaredTwice(f, literals):
				continue // a value that others are made of
			case !ok || f.Constraint == token.NOT:
				leave()
				continue
			}
			here := at
			here.pos = f.Pos()
			g.pending = append(g.pending, pendingRule{
				at: here, structPath: at.path,
				write:        func(s *schemaProps) (rule, bool) { return writeHidden(s, l, f, condition) },
				untranslated: leave,
			})
		}
	}
}

// hiddenName returns the name of a field that no user sees: a hidden one or a definition. It is "" for others.
func hiddenName(f *ast.Field) string {
	id, ok := f.Label.(*ast.Ident)
	if !ok || !strings.HasPrefix(id.Name, "_") && !strings.HasPrefix(id.Name, "#") {
		return ""
	}
	return id.Name
}

// isDeclaredTwice reports whether literals say more of a hidden field than one declaration of it does.
func isDeclaredTwice(f *ast.Field, literals []*ast.StructLit) bool {
	isOther := func(e ast.Decl) bool {
		o, ok := e.(*ast.Field)
		return ok && o != f && hiddenName(o) == hiddenName(f)
	}
	return slices.ContainsFunc(literals, func(l *ast.StructLit) bool { return slices.ContainsFunc(l.Elts, isOther) })
}

// mayRefuse reports whether a hidden field may be there to refuse something: it unifies values.
func mayRefuse(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && b.Op == token.AND
}

// hasToBeTrue returns the condition of a value like true & (a <= b).
func hasToBeTrue(e ast.Expr) (ast.Expr, bool) {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.AND {
		return nil, false
	}
	for _, sides := range [][2]ast.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		if lit, ok := sides[0].(*ast.BasicLit); ok && lit.Kind == token.TRUE {
			return sides[1], true
		}
	}
	return nil, false
}

// notTranslated is why a hidden field is no rule.
const notTranslated = "no rule in CEL says exactly the same"

// writeHidden writes the rule of a hidden field. It holds as long as a field is missing that it looks at.
func writeHidden(s *schemaProps, within *ast.StructLit, f *ast.Field, condition ast.Expr) (rule, bool) {
	t := &termWriter{schema: s, within: within, needs: map[string]bool{}}
	is, ok := t.boolean(condition)
	if !ok {
		return rule{}, false
	}
	message := cmp.Or(commentOf(f), presenceWords.Replace(ruleMessage(sourceOf(condition)))+" must be true")
	return rule{text: implied(t.needed(), is), message: message}, true
}

// An CUEOnlyConstraint is a constraint that the API server does not enforce: only a webhook or a reconcile rejects a
// resource that violates it.
type CUEOnlyConstraint struct {
	// Path is the struct or field that has it, Text how it is written, and Why says why no rule says it.
	Path, Text, Why string

	pos token.Pos
}
