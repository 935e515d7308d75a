package compile

import (
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A condition of a comprehension, such as if cr.spec.replicas > 1, is not decided for a hole. So the data
// are filled in once more as they are, and the open form of a package decides by those. The condition
// itself becomes a hidden field of the package: its translation is a guard, and part of the shape.
// So there is a template for each outcome, and not for each number of replicas.

// conditionPrefix is how the names of hidden fields begin that are a condition in the package.
const conditionPrefix = "_0if"

// conditionsAsFields adds a hidden field for each condition that is made of data only, and has the condition
// decided by the data as they are, once what it returns is called. Until then it is true, and refers to nothing.
func conditionsAsFields(x *syntax.Index, files []*ast.File) (decide func()) {
	n := 0
	conditions := map[*ast.IfClause]ast.Expr{}
	for _, f := range files {
		ast.Walk(f, func(node ast.Node) bool {
			c, ok := node.(*ast.IfClause)
			if !ok {
				return true
			}
			decided, ok := x.Known(c.Condition, func(path []string) ast.Expr { return asItIs(path, c) })
			if !ok {
				return true
			}
			f.Decls = append(f.Decls, &ast.Field{Label: ast.NewIdent(conditionPrefix + strconv.Itoa(n)), Value: c.Condition})
			c.Condition, conditions[c] = ast.NewBool(true), decided
			n++
			return false
		}, nil)
	}
	return func() {
		for c, decided := range conditions {
			c.Condition = decided
		}
	}
}

// asItIs returns a reference to a value as it is, for a condition.
func asItIs(path []string, c *ast.IfClause) ast.Expr {
	live := ast.NewIdent("live")
	live.NamePos = c.Condition.Pos()
	var e ast.Expr = live
	for _, name := range append([]string{program.PresenceField, program.ValuesField}, path...) {
		e = &ast.SelectorExpr{X: e, Sel: ast.NewString(name)}
	}
	return e
}

// A decidedCondition is a condition of a package, with the guards that it is what it is in a session.
type decidedCondition struct {
	condition *template.Node
	guards    []*template.Node
}

// conditionsOf translates the conditions of a package that rest on holes.
func (t *rolloutTranslator) conditionsOf(root cue.Value) ([]decidedCondition, error) {
	var out []decidedCondition
	it, err := root.Fields(cue.Hidden(true))
	for err == nil && it.Next() {
		v := it.Value()
		if !isCondition(it.Selector()) || !t.rests(v) {
			continue
		}
		var n *template.Node
		guards, err := guardsOf(t.translator, func() (err error) {
			n, err = t.node(v)
			return err
		})
		if err != nil {
			return nil, err
		}
		is, err := n.Eval(t.view)
		if err != nil {
			return nil, t.fail(v, "it is not decided")
		}
		guard := n
		if is != true {
			if guard, err = template.Call("!", n); err != nil {
				return nil, t.fail(v, "%v", err)
			}
		}
		out = append(out, decidedCondition{n, append(guards, guard)})
	}
	return out, nil
}

// isCondition reports whether a field is a condition in the package.
func isCondition(s cue.Selector) bool { return strings.HasPrefix(s.String(), conditionPrefix) }
