package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// Explain returns what a person needs to act on a predicate that does not hold:
// the condition, what it rests on, and where it is written.
func (p Predicate) Explain() string { return p.explain("") }

// ExplainWhen is Explain for the when of a component: where that is false, it says so, as nothing else does there.
func (p Predicate) ExplainWhen() string {
	if p.Verdict == False {
		return p.explain(" is false")
	}
	return p.explain("")
}

// explain returns the condition with what is said of it.
func (p Predicate) explain(verdict string) string {
	var b strings.Builder
	b.WriteString(cmp.Or(p.Source, p.Name))
	b.WriteString(verdict)
	if p.Detail != "" {
		fmt.Fprintf(&b, ": %s", p.Detail)
	}
	if pos := p.Position.String(); pos != "" {
		fmt.Fprintf(&b, " (%s)", pos)
	}
	return b.String()
}

// predicates evaluates the named conditions of one part of the component.
func (c *componentEvaluator) predicates(part string) []Predicate {
	v := c.part(part)
	var out []Predicate
	for name, condition := range fields(v) {
		one := c.predicate(name, condition)
		if part == "failed" && one.Verdict == True {
			c.locate(&one, condition) // for failed, true is the bad result, so it needs its position
		}
		out = append(out, one)
	}
	// Conditions that cannot even be listed must not look as if there were none.
	for _, f := range ownFaults(v) {
		verdict := Broken
		if cue.IsIncomplete(v.Err()) {
			verdict = Unknown
		}
		absent := c.absent(f)
		f = c.definition.placedFault(c.explained(f))
		out = append(out, Predicate{Name: part, Verdict: verdict, Position: f.Position, Absent: absent, Detail: f.Message})
	}
	return out
}

// predicate evaluates one condition. CUE distinguishes unknown from broken: Validate ignores
// incomplete values, and reports errors that no further data can fix.
func (c *componentEvaluator) predicate(name string, v cue.Value) Predicate {
	out := Predicate{Name: name}
	b, err := v.Bool()
	if err == nil && b {
		out.Verdict = True
		return out // taking the expression apart costs more than evaluating it
	}
	expr := c.locate(&out, v)
	if err == nil {
		out.Verdict, out.Detail = False, cmp.Or(compared(expr), inputMissing(expr))
		return out
	}
	own, others := ofComponent(c.out.Name, fault.FromCUE(v.Validate(), v))
	switch {
	case len(own) > 0:
		out.Verdict, out.Detail = Broken, own[0].Message
	case len(others) > 0:
		out.Verdict, out.Detail = Unknown, others[0].Located()
	default:
		out.Verdict, out.Detail = Unknown, c.missingIn(expr, err)
		c.noteNeedsPerson(&out, fault.FromCUE(err, v))
	}
	return out
}

// noteNeedsPerson records why only a person can make an unknown predicate known. A predicate that
// refers to a field that can never exist becomes Broken, and Unset gets a field of the spec that
// is not set.
func (c *componentEvaluator) noteNeedsPerson(out *Predicate, faults fault.Faults) {
	for _, f := range faults {
		if wrong, never := c.unwrittenField(f); never {
			out.Verdict, out.Detail = Broken, wrong.Message
			if wrong.Hint != "" {
				out.Detail += " (" + wrong.Hint + ")"
			}
			return
		}
		out.Unset, _ = c.unsetSpecField(f)
		if len(out.Absent.Path) == 0 {
			out.Absent = c.absent(f)
		}
	}
}

// locate records where a condition is written, and how, and returns what the author wrote.
func (c *componentEvaluator) locate(p *Predicate, condition cue.Value) cue.Value {
	expr := AuthorExpr(condition)
	if node := ExpressionOf(expr); node != nil {
		p.Position, p.Source = fault.PositionAt(node.Pos()), syntax.Source(node)
	}
	p.Position = c.definition.placed(p.Position, c.definition.below(condition.Path().String()))
	return expr
}

// AuthorExpr returns the part of a predicate that the author wrote: the value is
// the contract's bool as well.
func AuthorExpr(v cue.Value) cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return v
	}
	for _, a := range args {
		if id, ok := ExpressionOf(a).(*ast.Ident); !ok || id.Name != "bool" {
			return a
		}
	}
	return v
}

// ExpressionOf returns the expression that a value was written as, or nil.
func ExpressionOf(v cue.Value) ast.Expr {
	switch src := v.Source().(type) {
	case *ast.Field:
		return src.Value
	case ast.Expr:
		return src
	}
	return nil
}

// comparisons are the operators whose operands explain why a condition is false.
var comparisons = []cue.Op{
	cue.EqualOp, cue.NotEqualOp, cue.LessThanOp, cue.LessThanEqualOp,
	cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.RegexMatchOp, cue.NotRegexMatchOp,
}

// Comparison returns the operator and the two sides of a comparison, or no sides.
func Comparison(v cue.Value) (op cue.Op, sides []cue.Value) {
	op, args := v.Expr()
	if !slices.Contains(comparisons, op) || len(args) != 2 {
		return op, nil
	}
	return op, args
}

// compared returns the actual and the wanted value of a false comparison.
func compared(v cue.Value) string {
	op, sides := Comparison(v)
	if sides == nil {
		return ""
	}
	left, lok := scalarText(sides[0])
	right, rok := scalarText(sides[1])
	if !lok || !rok {
		return ""
	}
	return fmt.Sprintf("is %s, wanted %s %s", left, op, right)
}

// scalarText returns a concrete scalar as text. Structs and lists are left out:
// they may be long.
func scalarText(v cue.Value) (string, bool) {
	v, _ = v.Default()
	switch v.Kind() {
	case cue.BoolKind, cue.IntKind, cue.FloatKind, cue.NumberKind, cue.StringKind, cue.NullKind:
		return fmt.Sprint(v), true
	}
	return "", false
}

// missingIn returns why a predicate is unknown: its first missing reference, up to the first
// field that does not exist, or else the error.
func (c *componentEvaluator) missingIn(v cue.Value, err error) string {
	if path, ok := firstMissing(v, maxOperators); ok {
		return path + notThere
	}
	for _, f := range fault.FromCUE(err, v) {
		return c.explained(f).Message
	}
	return err.Error()
}

// firstMissing returns the first reference in an expression to something that does not exist, up
// to the first field that does not exist.
func firstMissing(v cue.Value, depth int) (string, bool) {
	if root, path := v.ReferencePath(); len(path.Selectors()) > 0 {
		sels := path.Selectors()
		for n := 1; n <= len(sels); n++ {
			if prefix := cue.MakePath(sels[:n]...); !root.LookupPath(prefix).Exists() {
				return prefix.String(), true
			}
		}
		return "", false
	}
	op, args := v.Expr()
	if op == cue.NoOp || depth == 0 {
		return "", false
	}
	for _, a := range args {
		if path, ok := firstMissing(a, depth-1); ok {
			return path, true
		}
	}
	return "", false
}
