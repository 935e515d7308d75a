package program

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
)

// Explain returns what a person needs to act on a predicate that does not hold:
// the condition, what it rests on, and where it is written.
func (p Predicate) Explain() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Source == "" {
		b.WriteString(p.Name)
	}
	if p.Detail != "" {
		fmt.Fprintf(&b, ": %s", p.Detail)
	}
	if pos := p.Position.String(); pos != "" {
		fmt.Fprintf(&b, " (%s)", pos)
	}
	return b.String()
}

// predicates evaluates the named conditions of one part of a component.
func (p *Program) predicates(component cue.Value, part string) []Predicate {
	it, err := component.LookupPath(cue.MakePath(cue.Str(part))).Fields()
	if err != nil {
		return nil
	}
	var out []Predicate
	for it.Next() {
		out = append(out, p.predicate(it.Selector().Unquoted(), it.Value()))
	}
	return out
}

// predicate evaluates one condition. The rule that tells unknown from broken is
// CUE's own: Validate ignores what is only incomplete and reports what can never
// become right.
func (p *Program) predicate(name string, v cue.Value) Predicate {
	out := Predicate{Name: name}
	b, err := v.Bool()
	if err == nil && b {
		out.Verdict = True
		return out // taking the expression apart costs more than evaluating it
	}
	expr := authorExpr(v)
	if node := nodeOf(expr); node != nil {
		out.Position = positionAt(node.Pos())
		out.Source = sourceText(node)
	}
	switch broken := v.Validate(); {
	case err == nil:
		out.Verdict = False
		out.Detail = comparison(expr)
	case broken == nil:
		out.Verdict = Unknown
		out.Detail = missingIn(expr, err)
	default:
		out.Verdict = Broken
		out.Detail = firstMessage(broken)
	}
	return out
}

// authorExpr returns the part of a predicate that the author wrote: the value is
// the contract's bool as well.
func authorExpr(v cue.Value) cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return v
	}
	for _, a := range args {
		if id, ok := nodeOf(a).(*ast.Ident); !ok || id.Name != "bool" {
			return a
		}
	}
	return v
}

// nodeOf returns the expression that a value was written as, or nil.
func nodeOf(v cue.Value) ast.Expr {
	switch src := v.Source().(type) {
	case *ast.Field:
		return src.Value
	case ast.Expr:
		return src
	}
	return nil
}

func sourceText(e ast.Expr) string {
	b, err := format.Node(e)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// comparisons are the operators whose operands say why a condition is false.
var comparisons = map[cue.Op]string{
	cue.EqualOp:            "==",
	cue.NotEqualOp:         "!=",
	cue.LessThanOp:         "<",
	cue.LessThanEqualOp:    "<=",
	cue.GreaterThanOp:      ">",
	cue.GreaterThanEqualOp: ">=",
	cue.RegexMatchOp:       "=~",
	cue.NotRegexMatchOp:    "!~",
}

// comparison returns the actual and the wanted value of a false comparison.
func comparison(v cue.Value) string {
	op, args := v.Expr()
	sign, ok := comparisons[op]
	if !ok || len(args) != 2 {
		return ""
	}
	left, lok := scalarText(args[0])
	right, rok := scalarText(args[1])
	if !lok || !rok {
		return ""
	}
	return fmt.Sprintf("is %s, wanted %s %s", left, sign, right)
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

// missingIn says what an unknown predicate waits for: the first part of a
// reference in it that is not there.
func missingIn(v cue.Value, err error) string {
	if path, ok := missingReference(v, 4); ok {
		return path + " is not there yet"
	}
	return firstMessage(err)
}

// missingReference looks for a reference in an expression that leads nowhere.
func missingReference(v cue.Value, depth int) (string, bool) {
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
		if path, ok := missingReference(a, depth-1); ok {
			return path, true
		}
	}
	return "", false
}

func firstMessage(err error) string {
	for _, f := range faultsOf(err) {
		return f.Message
	}
	return err.Error()
}
