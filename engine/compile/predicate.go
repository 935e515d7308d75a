package compile

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/literal"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A predicate is a condition whose verdict rests on data. Without a value it is as in the rollout.
type predicate struct {
	Value *template.Node
	// Sign, Left and Right are a comparison and its operands, which explain why it is false. Left
	// is nil if the value is no comparison of scalars.
	Sign        string
	Left, Right *template.Node
	// Located is the condition as the author wrote it, and where.
	Located program.Predicate
	// Failed is true for a condition that is bad if it is true.
	Failed bool
}

// eval completes a predicate for a view.
func (p *predicate) eval(into *program.Predicate, e *evaluation) error {
	if p.Value == nil {
		return nil
	}
	holds, err := evalAs[bool](p.Value, e)
	if err != nil {
		return err
	}
	*into = program.Predicate{Name: into.Name, Verdict: program.True}
	if holds && !p.Failed {
		return nil
	}
	into.Source, into.Position = p.Located.Source, p.Located.Position
	if holds {
		return nil
	}
	into.Verdict = program.False
	if p.Left == nil {
		return nil
	}
	left, err := e.Eval(p.Left)
	if err != nil {
		return err
	}
	right, err := e.Eval(p.Right)
	if err != nil {
		return err
	}
	if isDecimal(left) || isDecimal(right) {
		return template.ErrFallback // CUE writes it as the author did
	}
	actual, isScalar := text(left)
	wanted, areScalars := text(right)
	if isScalar && areScalars {
		into.Detail = "is " + actual + ", wanted " + p.Sign + " " + wanted
	}
	return nil
}

func isDecimal(v any) bool {
	_, ok := v.(template.Decimal)
	return ok
}

// text returns a scalar as CUE prints it.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		if strings.ContainsAny(v, "\n\r\t\"\\") {
			return literal.String.WithOptionalTabIndent(1).Quote(v), true
		}
		return literal.String.Quote(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool:
		return strconv.FormatBool(v), true
	case nil:
		return "null", true
	}
	return "", false
}

// predicate translates a condition. Unknown and broken ones have to be so with holes, too.
func (t *rolloutTranslator) predicate(component string, v cue.Value, part string, was, held program.Predicate) (predicate, error) {
	if was.Verdict == program.Unknown || was.Verdict == program.Broken || !v.Exists() || !t.rests(v) {
		same := held.Verdict == was.Verdict && textOf(held.Detail) == textOf(was.Detail) && sameReference(held.Absent, was.Absent)
		if !same {
			return predicate{}, t.fail(v, "the verdict may depend on values: %s", was.Detail)
		}
		if !v.Exists() {
			return predicate{}, nil
		}
		return predicate{}, t.guardOperands(program.AuthorExpr(v))
	}
	expr := program.AuthorExpr(v)
	value, err := t.node(expr)
	if err != nil {
		return predicate{}, err
	}
	out := predicate{Value: value, Failed: part == "failed", Located: t.locate(component, v)}
	if out.Located.Detail != "" {
		return predicate{}, t.fail(v, "what is missing of an input explains the verdict")
	}
	op, sides := program.Comparison(expr)
	if sides == nil {
		return out, nil
	}
	out.Sign = op.String()
	if out.Left, err = t.node(sides[0]); err != nil {
		return predicate{}, err
	}
	out.Right, err = t.node(sides[1])
	return out, err
}

// guardOperands guards that what is not known yet is not broken by the values that it rests on.
func (t *translator) guardOperands(v cue.Value) error {
	if t.depth++; t.depth > maxNesting {
		return t.fail(v, "it is nested too deep")
	}
	defer func() { t.depth-- }()
	if !t.rests(v) {
		return nil
	}
	n, nodeErr := t.node(v)
	if nodeErr == nil {
		return t.guardValue(v, n)
	}
	op, args := v.Expr()
	if to, ok := follow(v); ok && (op == cue.SelectorOp || op == cue.IndexOp) {
		return t.guardOperands(to)
	}
	if !binary[op] && op != cue.NotOp && op != cue.InterpolationOp || !slices.ContainsFunc(args, func(arg cue.Value) bool { return !t.rests(arg) || isOperation(arg) }) {
		return nodeErr
	}
	for _, arg := range args {
		if err := t.guardOperands(arg); err != nil {
			return err
		}
	}
	return nil
}

// isOperation reports whether a value is made by an operator or refers to something.
func isOperation(v cue.Value) bool {
	op, _ := v.Expr()
	return binary[op] || op == cue.NotOp || op == cue.SelectorOp || op == cue.IndexOp
}
