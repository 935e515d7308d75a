package crd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A sourceRange is a piece of a file.
type sourceRange struct{ from, to token.Pos }

func (r sourceRange) has(pos token.Pos) bool {
	return pos.IsValid() && pos.Filename() == r.from.Filename() && pos.Offset() >= r.from.Offset() && pos.Offset() < r.to.Offset()
}

// A conditional is a comprehension that requires or bounds fields which the struct has anyway.
type conditional struct {
	node   *ast.Comprehension
	within *ast.StructLit
	// clauses are its conditions.
	clauses []*ast.IfClause
	fields  []*ast.Field
}

// conditionals returns the comprehensions of literals that a rule can express, as far as the text shows, and reports whether
// they are all that depend on the user's input.
func conditionals(at location, literals []*ast.StructLit) (out []conditional, all bool) {
	all = true
	for _, l := range literals {
		for _, e := range l.Elts {
			c, ok := e.(*ast.Comprehension)
			if !ok || !slices.ContainsFunc(c.Clauses, func(c ast.Clause) bool { return dependencyOf(c, at).name != "" }) {
				continue
			}
			fields, ok := conditionalFields(c, l)
			if !ok {
				all = false
				continue
			}
			out = append(out, conditional{c, l, ifClauses(c), fields})
		}
	}
	return out, all
}

// conditionalFields returns the fields in a comprehension, if the struct around it declares them as well and they say no more
// than that they are required or bounded.
func conditionalFields(c *ast.Comprehension, around *ast.StructLit) ([]*ast.Field, bool) {
	body, ok := c.Value.(*ast.StructLit)
	if !ok || len(body.Elts) == 0 {
		return nil, false
	}
	if len(ifClauses(c)) < len(c.Clauses) || c.Fallback != nil {
		return nil, false
	}
	var out []*ast.Field
	for _, e := range body.Elts {
		f, ok := e.(*ast.Field)
		if !ok || len(f.Attrs) > 0 {
			return nil, false
		}
		outer := fieldOf(around, fieldName(f))
		if outer == nil {
			return nil, false
		}
		_, bounded := literalBounds(f.Value)
		adds := !isAny(f.Value) && sourceOf(f.Value) != sourceOf(outer.Value)
		switch {
		case adds && !bounded:
			return nil, false
		case !adds && f.Constraint != token.NOT: // it would be a value to fill in
			return nil, false
		}
		out = append(out, f)
	}
	return out, true
}

// ifClauses returns the clauses of a comprehension that are conditions.
func ifClauses(c *ast.Comprehension) []*ast.IfClause {
	var out []*ast.IfClause
	for _, clause := range c.Clauses {
		if is, ok := clause.(*ast.IfClause); ok {
			out = append(out, is)
		}
	}
	return out
}

// fieldOf returns the first field of a name in a literal, or nil.
func fieldOf(l *ast.StructLit, name string) *ast.Field {
	for _, e := range l.Elts {
		if f := fieldIn(e, name); f != nil {
			return f
		}
	}
	return nil
}

func isAny(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

func sourceOf(n ast.Node) string {
	text, _ := format.Node(n) // what was parsed can be printed
	return string(text)
}

// A literalBound is a bound that is a whole number.
type literalBound struct {
	op token.Token
	n  int64
}

// literalBounds returns the bounds of which a conjunction consists.
func literalBounds(e ast.Expr) ([]literalBound, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return literalBounds(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.AND {
			return nil, false
		}
		a, ok := literalBounds(e.X)
		b, alsoOK := literalBounds(e.Y)
		return append(a, b...), ok && alsoOK
	case *ast.UnaryExpr:
		n, ok := wholeNumber(e.X)
		return []literalBound{{e.Op, n}}, ok && boundOperators[e.Op] != "" && e.Op != token.NEQ
	}
	return nil, false
}

func wholeNumber(e ast.Expr) (int64, bool) {
	sign := int64(1)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		sign, e = -1, u.X
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.INT {
		return 0, false
	}
	n, err := strconv.ParseInt(lit.Value, 10, 64)
	return sign * n, err == nil
}

// addConditionals makes rules of comprehensions.
func (g *generator) addConditionals(at location, all []conditional) {
	for _, c := range all {
		for _, f := range c.fields {
			here := at
			here.pos = f.Pos()
			field := at.field(fieldName(f)).path
			outer := fieldOf(c.within, fieldName(f))
			within, _ := literalBounds(f.Value)
			for _, b := range within {
				g.noteBound(field, b.op, f.Constraint == token.ILLEGAL || outer != nil && outer.Constraint == token.ILLEGAL)
			}
			g.pending = append(g.pending, pendingRule{
				at: here, structPath: at.path, field: field,
				write:        func(s *schemaProps) (rule, bool) { return writeConditional(s, c, f) },
				untranslated: func() { g.reportConditional(at, c.node) },
			})
		}
	}
}

// writeConditional writes the rule for one field of a comprehension.
func writeConditional(s *schemaProps, c conditional, f *ast.Field) (rule, bool) {
	name := fieldName(f)
	own := lookUp(s, []string{name})
	bounds, _ := literalBounds(f.Value)
	if !own.known || own.leaf.Nullable {
		return rule{}, false
	}
	terms := []string{}
	if own.has != "" && f.Constraint != token.OPTION {
		terms = append(terms, own.has)
	}
	for _, b := range bounds {
		isRegular := f.Constraint == token.ILLEGAL || own.has == ""
		if own.leaf.Type != "integer" || own.leaf.XIntOrString || isRegular && (len(bounds) > 1 || mayCollapse(own.leaf, b.op)) {
			return rule{}, false
		}
		comparison := fmt.Sprintf("%s %s %d", own.text, boundOperators[b.op], b.n)
		if f.Constraint == token.OPTION {
			comparison = implied(own.guards, comparison)
		}
		terms = append(terms, comparison)
	}
	text := conjunction(terms)
	var said []string
	for _, clause := range slices.Backward(c.clauses) {
		condition := clause.Condition
		t := &termWriter{schema: s, within: c.within, needs: map[string]bool{}}
		is, ok := t.boolean(condition)
		if !ok {
			return rule{}, false
		}
		text = conjunction(append(t.needed(), "!"+parenthesized(is)+" || "+parenthesized(text)))
		said = append([]string{sourceOf(condition)}, said...)
	}
	out := rule{text: text, field: fieldPathOf([]string{name}), message: conditionalMessage(c, f, said)}
	if len(bounds) == 0 {
		out.reason = apiextensionsv1.FieldValueRequired
	}
	return out, true
}

// conditionalMessage returns the author's comment at the field or at the comprehension, or the constraint in words.
func conditionalMessage(c conditional, f *ast.Field, conditions []string) string {
	if text := cmp.Or(commentOf(f), commentOf(c.node)); text != "" {
		return text
	}
	what := " is required"
	if bounds, _ := literalBounds(f.Value); len(bounds) > 0 {
		what = " must be " + sourceOf(f.Value)
	}
	return ruleMessage(fieldName(f) + what + " if " + presenceWords.Replace(strings.Join(conditions, " and ")))
}

// presenceWords says in words what a comparison with bottom asks.
var presenceWords = strings.NewReplacer(" != _|_", " is set", " == _|_", " is not set")

// commentOf returns the doc comment of a node on one line.
func commentOf(n ast.Node) string {
	for _, group := range ast.Comments(n) {
		if group.Doc {
			return ruleMessage(group.Text())
		}
	}
	return ""
}

// maxMessage is how many bytes the API server allows for a message.
const maxMessage = 2048

// ruleMessage returns a text on one line, as long as the message of a rule may be.
func ruleMessage(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
	}
	return text
}

// A termWriter writes expressions of CUE over the fields of one struct in CEL.
type termWriter struct {
	schema *schemaProps
	within *ast.StructLit
	// needs are the conditions without which CUE has no value.
	needs map[string]bool
	order []string
}

func (t *termWriter) need(guards []string) {
	for _, g := range guards {
		if !t.needs[g] {
			t.needs[g] = true
			t.order = append(t.order, g)
		}
	}
}

// needed are the fields that have to be there. CUE evaluates both sides of && and ||.
func (t *termWriter) needed() []string { return slices.Clone(t.order) }

// boolean writes an expression that is true or false.
func (t *termWriter) boolean(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return t.boolean(e.X)
	case *ast.UnaryExpr:
		text, ok := t.boolean(e.X)
		return "!" + parenthesized(text), ok && e.Op == token.NOT
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			a, ok := t.boolean(e.X)
			b, alsoOK := t.boolean(e.Y)
			op := map[token.Token]string{token.LAND: " && ", token.LOR: " || "}[e.Op]
			return parenthesized(a) + op + parenthesized(b), ok && alsoOK
		}
		if _, isBottom := e.Y.(*ast.BottomLit); isBottom {
			return t.presence(e)
		}
		return t.comparison(e)
	}
	v, ok := t.operand(e)
	return v.text, ok && v.kind == "boolean" && v.isField
}

// presence writes a comparison with bottom.
func (t *termWriter) presence(e *ast.BinaryExpr) (string, bool) {
	f, ok := t.field(e.X)
	if !ok || e.Op != token.NEQ && e.Op != token.EQL {
		return "", false
	}
	text := conjunction(f.guards)
	if e.Op == token.EQL {
		text = "!" + parenthesized(text)
	}
	return text, true
}

// comparing are the comparisons, as CEL has them.
var comparing = map[token.Token]string{
	token.EQL: "==", token.NEQ: "!=", token.LSS: "<", token.LEQ: "<=", token.GTR: ">", token.GEQ: ">=",
}

// comparison writes a comparison of two operands of one type.
func (t *termWriter) comparison(e *ast.BinaryExpr) (string, bool) {
	op := comparing[e.Op]
	a, ok := t.operand(e.X)
	b, alsoOK := t.operand(e.Y)
	if op == "" || !ok || !alsoOK || a.kind != b.kind || !a.isField && !b.isField {
		return "", false
	}
	if a.kind != "integer" && op != "==" && op != "!=" {
		return "", false
	}
	return a.text + " " + op + " " + b.text, true
}

// A term is an operand in CEL.
type term struct {
	text    string
	kind    string
	isField bool
}

// operand writes a field, a literal or the number of elements of a list.
func (t *termWriter) operand(e ast.Expr) (term, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return t.operand(e.X)
	case *ast.BasicLit:
		return literalTerm(e)
	case *ast.UnaryExpr:
		n, ok := wholeNumber(e)
		return term{text: strconv.FormatInt(n, 10), kind: "integer"}, ok
	case *ast.CallExpr:
		name, ok := e.Fun.(*ast.Ident)
		if !ok || name.Name != "len" || name.Node != nil || len(e.Args) != 1 {
			return term{}, false
		}
		f, ok := t.field(e.Args[0])
		if !ok || f.leaf.Type != "array" || f.leaf.Nullable {
			return term{}, false
		}
		t.need(f.guards)
		return term{text: "size(" + f.text + ")", kind: "integer", isField: true}, true
	}
	f, ok := t.field(e)
	if !ok || f.leaf.Nullable || f.leaf.XIntOrString || !slices.Contains([]string{"integer", "string", "boolean"}, f.leaf.Type) {
		return term{}, false
	}
	t.need(f.guards)
	return term{text: f.text, kind: f.leaf.Type, isField: true}, true
}

// literalTerm writes a literal.
func literalTerm(e *ast.BasicLit) (term, bool) {
	switch e.Kind {
	case token.TRUE, token.FALSE:
		return term{text: e.Value, kind: "boolean"}, true
	case token.INT:
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return term{text: strconv.FormatInt(n, 10), kind: "integer"}, err == nil
	case token.STRING:
		if strings.HasPrefix(strings.TrimLeft(e.Value, "#"), "'") {
			return term{}, false // bytes, which no text equals
		}
		text, err := literal.Unquote(e.Value)
		return term{text: celString(text), kind: "string"}, err == nil
	}
	return term{}, false
}

// celString writes a string as CEL does.
func celString(text string) string {
	out := strings.Builder{}
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String() + `"`
}

// field returns a field of the struct.
func (t *termWriter) field(e ast.Expr) (lookedUp, bool) {
	names, scope := fieldReference(e)
	if scope == nil || scope != t.within {
		return lookedUp{}, false
	}
	f := lookUp(t.schema, names)
	return f, f.known
}

// constraintOf returns whether a field of a struct is optional, required or regular without what it gets under conditions
// that become rules.
func (l location) constraintOf(sel cue.Selector) cue.SelectorType {
	if len(l.conditions) == 0 {
		return sel.ConstraintType()
	}
	out, found := cue.OptionalConstraint, false
	for _, literal := range l.literals {
		for _, e := range literal.Elts {
			f := fieldIn(e, sel.Unquoted())
			if f == nil {
				continue
			}
			found = true
			switch f.Constraint {
			case token.OPTION:
			case token.NOT:
				if out == cue.OptionalConstraint {
					out = cue.RequiredConstraint
				}
			default:
				out = 0
			}
		}
	}
	if !found {
		return sel.ConstraintType()
	}
	return out
}
