package crd

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Some constraints over several fields are rules in CEL that say exactly the same:
//
//	max: int & >=min                     a bound that is another integer of the struct
//	if mode == "tls" {cert!: _}          fields that are required, or bounded, under a condition
//	_valid: true & (min <= max)          a hidden field that has to be true
//	{a?: int, b?: int} & matchN(1, [{a!: _}, {b!: _}])
//
// Anything else that is like these is a fault, as before, apart from hidden fields, which no CustomResourceDefinition has.
// A rule needs to know which fields may be missing, so it is written when the schema of its struct is complete.

// A pendingRule is a rule of a struct whose schema is not complete yet.
type pendingRule struct {
	at location
	// structPath is the struct that gets the rule.
	structPath string
	// field is the path of the field that it bounds, or "".
	field string
	write func(schema *schemaProps) (rule, bool)
	// untranslated reports that the schema does not allow the rule.
	untranslated func()
}

// bounds are what the rules bound a field by. Between a lower and an upper one there may be a single value, which CUE fills
// into a regular field.
type bounds struct{ lower, upper, regular bool }

func (b bounds) mayCollapse() bool { return b.lower && b.upper && b.regular }

// noteBound records the bound of a field.
func (g *generator) noteBound(field string, op token.Token, isRegular bool) {
	if g.bounded == nil {
		g.bounded = map[string]bounds{}
	}
	b := g.bounded[field]
	b.lower = b.lower || op == token.GTR || op == token.GEQ
	b.upper = b.upper || op == token.LSS || op == token.LEQ
	b.regular = b.regular || isRegular
	g.bounded[field] = b
}

// A rule is one in CEL.
type rule struct {
	text, message, field string
	reason               apiextensionsv1.FieldValueErrorReason
}

// addPending adds the rules of a struct whose schema is complete.
func (g *generator) addPending(at location, schema *schemaProps) {
	var others []pendingRule
	for _, p := range g.pending {
		if p.structPath != at.path {
			others = append(others, p)
			continue
		}
		r, ok := p.write(schema)
		if !ok || g.bounded[p.field].mayCollapse() {
			p.untranslated()
			continue
		}
		v := apiextensionsv1.ValidationRule{Rule: r.text, Message: r.message, FieldPath: r.field}
		if r.reason != "" {
			v.Reason = &r.reason
		}
		if slices.ContainsFunc(schema.XValidations, func(o apiextensionsv1.ValidationRule) bool { return o.Rule == v.Rule }) {
			continue // the same definition is part of the struct twice
		}
		schema.XValidations = append(schema.XValidations, v)
		g.translated = append(g.translated, TranslatedRule{Path: at.path, Rule: v.Rule, pos: p.at.pos})
	}
	g.pending = others
}

// A TranslatedRule is a rule that is made of a constraint in CUE.
type TranslatedRule struct {
	// Path is the struct that has the rule, such as versions.v1.spec.
	Path, Rule string

	pos token.Pos
}

// boundOperators are the comparisons of a bound, as CEL has them.
var boundOperators = map[token.Token]string{
	token.LSS: "<", token.LEQ: "<=", token.GTR: ">", token.GEQ: ">=", token.NEQ: "!=",
}

// independent returns a field without the bounds that are other fields of a struct around it, which become rules, and
// without what it gets under conditions. A field with any other dependency is returned as it is.
func (g *generator) independent(at location, sel cue.Selector, v cue.Value) cue.Value {
	var rest []cue.Value
	var bounds []pendingRule
	for _, c := range conjunctsOf(v) {
		if slices.ContainsFunc(at.conditions, func(r sourceRange) bool { return r.has(c.Pos()) }) {
			continue
		}
		d := g.findDependency(at, c)
		if d.name == "" {
			rest = append(rest, c)
			continue
		}
		p, ok := g.boundRule(at, sel, c)
		if !ok {
			return v
		}
		bounds = append(bounds, p)
	}
	if len(rest) == 0 || len(bounds) == 0 && len(rest) == len(conjunctsOf(v)) {
		return v
	}
	out := rest[0]
	for _, c := range rest[1:] {
		out = out.Unify(c)
	}
	if g.findDependency(at, out).name != "" {
		return v
	}
	g.pending = append(g.pending, bounds...)
	return out
}

// conjunctsOf returns the operands of a conjunction, and of those in it. A disjunction is one operand.
func conjunctsOf(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, conjunctsOf(a)...)
	}
	return out
}

// boundRule returns the rule of a bound that is another field, if it is one.
func (g *generator) boundRule(at location, sel cue.Selector, bound cue.Value) (pendingRule, bool) {
	sources := sourceExpressions(bound)
	if len(sources) != 1 {
		return pendingRule{}, false
	}
	unary, ok := sources[0].(*ast.UnaryExpr)
	if !ok || boundOperators[unary.Op] == "" {
		return pendingRule{}, false
	}
	names, scope := fieldReference(unary.X)
	if scope == nil {
		return pendingRule{}, false
	}
	around := at.occurrencesOf(scope)
	if len(around) == 0 {
		return pendingRule{}, false
	}
	structPath := around[len(around)-1].path
	below, inStruct := strings.CutPrefix(at.path, structPath+".")
	if !inStruct || strings.Contains(below, "[") || strings.Contains(below, `"`) {
		return pendingRule{}, false
	}
	own := strings.Split(below, ".")
	g.noteBound(at.path, unary.Op, at.constraintOf(sel) == 0)
	d := dependency{name: strings.Join(names, "."), structPath: structPath, operator: unary.Op}
	return pendingRule{
		at: at.positionedAt(bound), structPath: structPath, field: at.path,
		write: func(s *schemaProps) (rule, bool) {
			return writeBound(s, own, names, unary.Op, sel.ConstraintType() == 0)
		},
		untranslated: func() { g.reportDependency(at, d) },
	}, true
}

// fieldReference returns the names of a reference to a regular field of a struct literal, or of one below it, and the
// literal; nil for anything else.
func fieldReference(e ast.Expr) ([]string, *ast.StructLit) {
	names := referredNames(e)
	root := e
	for {
		s, ok := root.(*ast.SelectorExpr)
		if !ok {
			break
		}
		root = s.X
	}
	id, ok := root.(*ast.Ident)
	if !ok || strings.HasPrefix(id.Name, "_") || strings.HasPrefix(id.Name, "#") {
		return nil, nil
	}
	scope, ok := id.Scope.(*ast.StructLit)
	if !ok || !declares(scope, id.Name) {
		return nil, nil // a let, or an alias
	}
	return names, scope
}

// declares reports whether a literal has a field of a name.
func declares(l *ast.StructLit, name string) bool {
	return slices.ContainsFunc(l.Elts, func(e ast.Decl) bool { return fieldIn(e, name) != nil })
}

// fieldIn returns the field of a name that a declaration is, or nil.
func fieldIn(d ast.Decl, name string) *ast.Field {
	f, ok := d.(*ast.Field)
	if !ok || name == "" || fieldName(f) != name {
		return nil
	}
	return f
}

// fieldName returns the literal name of a field without an alias, or "".
func fieldName(f *ast.Field) string {
	if _, ok := f.Label.(*ast.Alias); ok {
		return "" // its name is the alias
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return ""
	}
	return name
}

// writeBound writes the rule that a field compares with another one. CUE takes the only value that is left as the value of
// a regular field that the user leaves out; the API server does not, so that there must not be a single one.
func writeBound(s *schemaProps, own, other []string, op token.Token, isRegular bool) (rule, bool) {
	a, b := lookUp(s, own), lookUp(s, other)
	if !a.known || !b.known || a.leaf.Nullable || b.leaf.Nullable || a.leaf.Type != b.leaf.Type || a.leaf.XIntOrString || b.leaf.XIntOrString {
		return rule{}, false
	}
	switch a.leaf.Type {
	case "integer":
		if isRegular && mayCollapse(a.leaf, op) {
			return rule{}, false
		}
	case "string", "boolean":
		if op != token.NEQ || isRegular && len(a.leaf.Enum) > 0 || a.leaf.Type == "boolean" {
			return rule{}, false
		}
	default:
		return rule{}, false
	}
	comparison := a.text + " " + boundOperators[op] + " " + b.text
	return rule{
		text:    implied(a.guards, conjunction(append(slices.Clone(b.guards), comparison))),
		message: fmt.Sprintf("%s must be %s %s", strings.Join(own, "."), boundOperators[op], strings.Join(other, ".")),
		field:   fieldPathOf(own),
	}, true
}

// mayCollapse reports whether a bound may leave a single value, which CUE takes then, while the API server has another default
// or none.
func mayCollapse(leaf *schemaProps, op token.Token) bool {
	if op == token.NEQ {
		return len(leaf.Enum) > 0 || leaf.Minimum != nil && leaf.Maximum != nil || len(leaf.AnyOf) > 0
	}
	upper := op == token.LSS || op == token.LEQ
	opposite, exclusive := leaf.Maximum, leaf.ExclusiveMaximum
	if upper {
		opposite, exclusive = leaf.Minimum, leaf.ExclusiveMinimum
	}
	switch {
	case len(leaf.Enum) > 0 || len(leaf.AnyOf) > 0 || len(leaf.AllOf) > 0 || leaf.Not != nil:
		return true
	case opposite == nil:
		return false
	case leaf.Default != nil && !exclusive:
		n, ok := decodeJSON(leaf.Default.Raw).(float64)
		return !ok || n != *opposite
	}
	return true
}

// A lookedUp is a field below a struct, as CEL has it.
type lookedUp struct {
	known bool
	leaf  *schemaProps
	text  string
	// guards say that the fields on the way exist that may be missing, and has is that about the field itself or "".
	guards []string
	has    string
}

// lookUp returns the field at a path below the schema of a struct.
func lookUp(s *schemaProps, names []string) lookedUp {
	out := lookedUp{text: "self"}
	for i, name := range names {
		property, ok := s.Properties[name]
		if !ok || !isCELName(name) || i > 0 && s.Nullable {
			return lookedUp{}
		}
		out.text += "." + celName(name)
		out.has = ""
		if !slices.Contains(s.Required, name) && property.Default == nil {
			out.has = "has(" + out.text + ")"
			out.guards = append(out.guards, out.has)
		}
		s = &property
	}
	isBytes := slices.ContainsFunc(s.AllOf, func(a schemaProps) bool { return a.Format == "byte" })
	out.leaf, out.known = s, !ptr.Deref(s.XPreserveUnknownFields, false) && !isBytes
	return out
}

// isCELName reports whether rules have a name for a property.
func isCELName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-./", r)) {
			return false
		}
	}
	return name != ""
}

// fieldPathOf returns the path of a field for an API server to name in an error, or "" if it has no simple one.
func fieldPathOf(names []string) string {
	for _, name := range names {
		if strings.ContainsAny(name, `-./'"`) || !isCELName(name) {
			return ""
		}
	}
	return "." + strings.Join(names, ".")
}

// implied returns the rule that something holds if some conditions do.
func implied(conditions []string, then string) string {
	if len(conditions) == 0 {
		return then
	}
	return "!(" + conjunction(conditions) + ") || " + parenthesized(then)
}

func conjunction(terms []string) string {
	if len(terms) == 0 {
		return "true"
	}
	if len(terms) == 1 {
		return terms[0]
	}
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = parenthesized(t)
	}
	return strings.Join(out, " && ")
}

// parenthesized returns a term that can be an operand.
func parenthesized(text string) string {
	if strings.ContainsAny(text, "&|?<>=!") {
		return "(" + text + ")"
	}
	return text
}
