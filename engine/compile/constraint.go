package compile

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// unified translates a unification: one operand is the value, and the others are constraints on
// it, which become guards.
func (t *translator) unified(v cue.Value, args []cue.Value) (*template.Node, error) {
	var value *template.Node
	var constraints []cue.Value
	marked := false
	for _, arg := range args {
		if !t.rests(arg) || isConstraint(arg) {
			constraints = append(constraints, arg)
			continue
		}
		n, err := t.node(arg)
		marked = marked || err == nil && isMarked(arg, t.at)
		switch {
		case err != nil:
			return nil, err
		case value == nil:
			value = n
		case v.IncompleteKind()&cue.FloatKind != 0:
			return nil, t.fail(v, "two numbers are one value if they are of one kind")
		default:
			if err := t.guardEqual(v, value, n); err != nil {
				return nil, err
			}
		}
	}
	if value == nil {
		return nil, t.fail(v, "it has constraints and no value: %v", v)
	}
	for _, c := range constraints {
		n, err := t.check(c, value, v.IncompleteKind())
		if d, ok := c.Default(); ok && marked && err == nil {
			n, err = t.checkConstant(d, value)
		}
		if err != nil {
			out := untranslatedf(v.Path().String(), "%v", err)
			out.Position, out.paths = posOf(c), t.restsOn(v)
			return nil, out
		}
		if n != nil {
			t.guard(n)
		}
	}
	return value, nil
}

// isMarked reports whether the value of an operand is what a disjunction marks as its default, as in *hole | "a". Unified with
// another default that is another value, it has none: CUE knows several values then, and chooses none.
func isMarked(v cue.Value, holes map[ast.Node][]string) bool {
	op, args := v.Expr()
	if _, hole := holes[v.Source()]; hole && op != cue.AndOp {
		return false
	}
	switch op {
	case cue.OrOp:
		return true
	case cue.AndOp:
		return slices.ContainsFunc(args, func(arg cue.Value) bool { return isMarked(arg, holes) })
	case cue.NoOp:
		return len(args) == 1 && args[0].Source() != v.Source() && isMarked(args[0], holes)
	case cue.SelectorOp, cue.IndexOp:
		to, ok := follow(v)
		return ok && isMarked(to, holes)
	}
	return false
}

// isConstraint reports whether a value is a bound, which is no value even if it rests on holes.
func isConstraint(v cue.Value) bool {
	op, args := v.Expr()
	if op == cue.SelectorOp {
		if to, ok := follow(v); ok {
			return isConstraint(to)
		}
	}
	return bounds[op] && len(args) == 1
}

var bounds = map[cue.Op]bool{
	cue.GreaterThanEqualOp: true, cue.GreaterThanOp: true, cue.LessThanEqualOp: true, cue.LessThanOp: true,
	cue.NotEqualOp: true, cue.RegexMatchOp: true, cue.NotRegexMatchOp: true,
}

// checkConstant translates a constraint that one value meets.
func (t *translator) checkConstant(c cue.Value, value *template.Node) (*template.Node, error) {
	x, err := t.constant(c)
	if err != nil {
		return nil, err
	}
	if c.Kind() == cue.FloatKind {
		return nil, t.fail(c, "two numbers are one value if they are of one kind")
	}
	return template.Call("==", value, x)
}

// check translates a constraint on a value of a kind. It returns nil if the kind meets it.
func (t *translator) check(c cue.Value, value *template.Node, kind cue.Kind) (*template.Node, error) {
	op, args := c.Expr()
	if c.IsConcrete() && !t.rests(c) && (len(args) < 2 || !isDisjunction(c)) {
		return t.checkConstant(c, value)
	}
	if to, ok := standsFor(c); ok {
		return t.check(to, value, kind)
	}
	switch {
	case op == cue.AndOp:
		return t.all(args, value, kind)
	case op == cue.OrOp:
		return t.any(args, value, kind)
	case bounds[op] && len(args) == 1:
		bound, err := t.node(args[0])
		if err != nil {
			return nil, err
		}
		return template.Call(op.String(), value, bound)
	case op == cue.CallOp:
		return t.validator(args, value)
	}
	if (op == cue.NoOp || op == cue.SelectorOp) && isType(c, kind) {
		return nil, nil
	}
	return nil, t.fail(c, "there is no check for %v", c)
}

// standsFor returns the value that a constraint is written as a reference to, or in parentheses.
func standsFor(c cue.Value) (cue.Value, bool) {
	switch op, args := c.Expr(); op {
	case cue.NoOp:
		if len(args) == 1 && args[0].Source() != c.Source() {
			return args[0], true
		}
	case cue.SelectorOp:
		return follow(c)
	}
	return cue.Value{}, false
}

// isType reports whether a value is a basic type that all values of a kind belong to.
func isType(v cue.Value, kind cue.Kind) bool {
	id, ok := unwrapped(program.ExpressionOf(v)).(*ast.Ident)
	return ok && v.IncompleteKind()&kind == kind && typeNames[id.Name]
}

// typeNames are the types that all values of their kinds belong to. The others, such as uint8,
// have bounds.
var typeNames = map[string]bool{"string": true, "int": true, "number": true, "bool": true, "bytes": true, "_": true, "float": true, "null": true}

// validator translates a function that checks a value, such as strings.MinRunes(1).
func (t *translator) validator(args []cue.Value, value *template.Node) (*template.Node, error) {
	name := function(args[0])
	nodes := []*template.Node{value}
	for _, arg := range args[1:] {
		n, err := t.node(arg)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return template.Call(name, nodes...)
}

// all translates several constraints that all have to be met.
func (t *translator) all(args []cue.Value, value *template.Node, kind cue.Kind) (*template.Node, error) {
	var nodes []*template.Node
	for _, arg := range args {
		n, err := t.check(arg, value, kind)
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return template.Call("&&", nodes...)
}

// any translates several constraints of which one has to be met.
func (t *translator) any(args []cue.Value, value *template.Node, kind cue.Kind) (*template.Node, error) {
	nodes := make([]*template.Node, len(args))
	for i, arg := range args {
		if arg.IncompleteKind()&kind == 0 {
			nodes[i] = template.Constant(false)
			continue
		}
		n, err := t.check(arg, value, kind)
		if n == nil || err != nil {
			return n, err
		}
		nodes[i] = n
	}
	return template.Call("||", nodes...)
}
