package crd

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A choice between structs that a field tells apart becomes one struct with the fields of all of them, and rules:
//
//	{kind: "disk", size: int} | {kind: "bucket", name: string}
//
//	kind, size and name are optional, kind is one of both
//	kind "disk" requires size, and allows no name; kind "bucket" the other way round
//	without kind, the other fields have to tell: CUE fills it in
//
// With kind!: it is required. A field of several alternatives has to have one schema in all of them, and a default has to be one of
// all of them, as the API server fills it in whatever the kind is.

// maxAlternatives bounds how many structs a choice has that becomes rules: the last rule compares each with all others.
const maxAlternatives = 16

// maxChoiceRule bounds a rule of a choice, in bytes: an API server refuses one of 100,000, and each costs memory in it.
const maxChoiceRule = 20_000

// An alternative is one of the structs of a choice.
type alternative struct {
	// value is the text of the field that tells.
	value  string
	schema schemaProps
}

// lacks returns the fields of a choice that the alternative does not have.
func (a alternative) lacks(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { _, has := a.schema.Properties[name]; return has })
}

// requires returns the fields that a user has to set.
func (a alternative) requires(tells string) []string {
	return slices.DeleteFunc(slices.Clone(a.schema.Required), func(name string) bool { return name == tells })
}

// choiceSchema returns the schema of a choice between structs, or false if it has none that says exactly the same. It then adds no fault,
// unless a field of an alternative has one.
func (g *generator) choiceSchema(at location, v cue.Value, p parts, attrs attributes) (*schemaProps, bool) {
	literals := structLiterals(v)
	if g.isStatus || attrs.preserve || p.choices != 1 || len(p.arms) > maxAlternatives || len(p.constants)+len(p.calls) > 0 || p.null ||
		!arePlain(at.enclosedBy(literals), literals) || hasPreferred(v) || slices.ContainsFunc(p.arms, hasCRDAttribute) {
		return nil, false
	}
	tells, constraint := tellingField(p.arms)
	if tells == "" || !areDeclaredAlike(tells, literals) {
		return nil, false
	}
	mark := *g
	var all []alternative
	for _, arm := range p.arms {
		text, _ := arm.LookupPath(cue.MakePath(cue.Str(tells).Required())).String()
		if constraint != cue.RequiredConstraint {
			text, _ = arm.LookupPath(cue.MakePath(cue.Str(tells))).String()
		}
		one := v.FillPath(cue.MakePath(cue.Str(tells)), text)
		if op, _ := one.Eval().Expr(); op == cue.OrOp || one.Err() != nil || one.Allows(cue.AnyString) {
			*g = mark
			return nil, false
		}
		a := alternative{value: text, schema: schemaProps{Type: "object"}}
		if !g.addFields(at.enclosedBy(literals), one, &a.schema) {
			return nil, true // the fault of the field is said
		}
		all = append(all, a)
	}
	schema, ok := united(tells, all)
	if !ok || len(g.pending) > len(mark.pending) || len(g.inCUE) > len(mark.inCUE) {
		*g = mark
		return nil, false
	}
	rules := choiceRules(tells, constraint, schema, all)
	if slices.ContainsFunc(rules, func(r rule) bool { return len(r.text) > maxChoiceRule }) {
		*g = mark
		return nil, false
	}
	slices.SortFunc(g.translated[len(mark.translated):], func(a, b TranslatedRule) int {
		return strings.Compare(a.Path+" "+a.Rule, b.Path+" "+b.Rule) // a field of several alternatives has its rules once for each
	})
	g.translated = slices.Concat(g.translated[:len(mark.translated)], slices.CompactFunc(g.translated[len(mark.translated):], func(a, b TranslatedRule) bool { return a.Path == b.Path && a.Rule == b.Rule }))
	if constraint == cue.RequiredConstraint {
		schema.Required = append(schema.Required, tells)
		slices.Sort(schema.Required)
	}
	for _, r := range rules {
		schema.XValidations = append(schema.XValidations, apiextensionsv1.ValidationRule{Rule: r.text, Message: r.message})
		g.translated = append(g.translated, TranslatedRule{Path: at.path, Rule: r.text, pos: at.pos})
	}
	return schema, true
}

// arePlain reports whether literals have nothing but fields and what is embedded: no conditions, no dependent hidden fields, no
// attributes, which would be about one alternative, and no "..." on purpose.
func arePlain(at location, literals []*ast.StructLit) bool {
	return !hasEllipsis(literals) && !slices.ContainsFunc(literals, func(l *ast.StructLit) bool {
		return slices.ContainsFunc(l.Elts, func(e ast.Decl) bool {
			switch e := e.(type) {
			case *ast.Comprehension, *ast.Attribute:
				return true
			case *ast.Field:
				return hiddenName(e) != "" && dependencyOf(e.Value, at).name != ""
			}
			return false
		})
	})
}

// hasCRDAttribute reports whether an alternative, or a definition that it is, has an attribute that would be one of the choice.
func hasCRDAttribute(arm cue.Value) bool {
	for to := range operands(arm, nil) {
		if slices.ContainsFunc(to.Attributes(cue.ValueAttr), func(a cue.Attribute) bool { return a.Name() == "crd" }) {
			return true
		}
	}
	return false
}

// hasPreferred reports whether an alternative has a star: CUE takes it if the others are possible as well, and an API server fills in
// no struct.
func hasPreferred(v cue.Value) bool {
	var starred func(ast.Expr) bool
	starred = func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			return starred(e.X) || starred(e.Y)
		case *ast.ParenExpr:
			return starred(e.X)
		case *ast.UnaryExpr:
			return e.Op == token.MUL
		}
		return false
	}
	for to := range operands(v, nil) {
		if slices.ContainsFunc(sourceExpressions(to), starred) {
			return true
		}
	}
	return false
}

// areDeclaredAlike reports whether a field has the same mark, if any, wherever it is declared: one that is required in the
// alternatives, and regular beside them, is not required.
func areDeclaredAlike(name string, literals []*ast.StructLit) bool {
	marks := map[token.Token]bool{}
	for _, l := range literals {
		for _, e := range l.Elts {
			f, is := e.(*ast.Field)
			if !is {
				continue
			}
			if label, _, err := ast.LabelName(f.Label); err == nil && label == name {
				marks[f.Constraint] = true
			}
		}
	}
	return len(marks) <= 1
}

// tellingField returns the first field that has another text in each of some structs, and how all of them declare it; "" if there is none.
func tellingField(arms []cue.Value) (string, cue.SelectorType) {
	if len(arms) == 0 {
		return "", 0
	}
	fields, err := arms[0].Fields(cue.Optional(true))
	if err != nil {
		return "", 0
	}
	for fields.Next() {
		sel := fields.Selector()
		constraint := sel.ConstraintType()
		if sel.LabelType() != cue.StringLabel || constraint == cue.OptionalConstraint || !isCELName(sel.Unquoted()) {
			continue
		}
		if tellsApart(arms, sel) {
			return sel.Unquoted(), constraint
		}
	}
	return "", 0
}

// tellsApart reports whether a field is a text of its own in each of some structs.
func tellsApart(arms []cue.Value, sel cue.Selector) bool {
	seen := map[string]bool{}
	for _, arm := range arms {
		f := arm.LookupPath(cue.MakePath(sel))
		text, err := f.String()
		op, _ := f.Expr()
		if err != nil || op != cue.NoOp || seen[text] || f.Kind() != cue.StringKind {
			return false
		}
		seen[text] = true
	}
	return true
}

// united returns the schema of all alternatives without rules. It returns false if there is none, also because of a field that may be
// null: a rule cannot tell a null that is stored from a field that is not there.
func united(tells string, all []alternative) (*schemaProps, bool) {
	out := &schemaProps{Type: "object", Properties: map[string]schemaProps{}}
	count := map[string]int{}
	for _, a := range all {
		if len(a.schema.XValidations) > 0 || a.schema.AdditionalProperties != nil {
			return nil, false
		}
		for name, property := range a.schema.Properties {
			before, known := out.Properties[name]
			count[name]++
			switch {
			case !isCELName(name), property.Nullable, name == tells && len(property.XValidations) > 0, name != tells && known && !isSame(before, property):
				return nil, false
			case name == tells:
				out.Properties[name] = a.telling(before, property)
			case !known:
				out.Properties[name] = property
			}
		}
	}
	for name, property := range out.Properties {
		if property.Default != nil && count[name] < len(all) {
			return nil, false
		}
		if !slices.ContainsFunc(all, func(a alternative) bool { return !slices.Contains(a.requires(tells), name) }) {
			out.Required = append(out.Required, name)
		}
	}
	slices.Sort(out.Required)
	return out, true
}

// telling returns the field that tells, with the text of one more alternative.
func (a alternative) telling(before, property schemaProps) schemaProps {
	text, _ := json.Marshal(a.value) // a text is always JSON
	property.Default, property.Enum = nil, append(slices.Clone(before.Enum), apiextensionsv1.JSON{Raw: text})
	if !strings.Contains(before.Description, property.Description) {
		property.Description = strings.TrimSpace(before.Description + "\n" + property.Description)
	} else {
		property.Description = before.Description
	}
	return property
}

// isSame reports whether two schemas accept the same, and have the same defaults.
func isSame(a, b schemaProps) bool {
	a.Description, b.Description = "", ""
	return reflect.DeepEqual(a, b)
}

// choiceRules returns the rules of a choice.
func choiceRules(tells string, constraint cue.SelectorType, schema *schemaProps, all []alternative) []rule {
	var names []string
	for name := range schema.Properties {
		if name != tells {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []rule
	var untold []string
	for i, a := range all {
		missing := slices.DeleteFunc(a.requires(tells), func(name string) bool { return slices.Contains(schema.Required, name) })
		is := []string{"self." + celName(tells) + " == " + celString(a.value)}
		if constraint != cue.RequiredConstraint {
			is = append([]string{has(tells)}, is...)
		}
		if len(missing) > 0 {
			out = append(out, rule{text: implied(is, conjunction(each(missing, has))), message: fmt.Sprintf("%s %q requires %s", tells, a.value, strings.Join(missing, ", "))})
		}
		if extra := a.lacks(names); len(extra) > 0 {
			out = append(out, rule{text: implied(is, conjunction(each(extra, hasNot))), message: fmt.Sprintf("%s %q allows no %s", tells, a.value, strings.Join(extra, ", "))})
		}
		terms := append(each(a.lacks(names), hasNot), each(missing, has)...)
		for j, other := range all {
			if j != i {
				terms = append(terms, anyOf(other.lacks(names)))
			}
		}
		untold = append(untold, parenthesized(conjunction(terms)))
	}
	if constraint == cue.RequiredConstraint {
		return out
	}
	return append(out, rule{text: has(tells) + " || " + strings.Join(untold, " || "), message: "set " + tells + ": the other fields do not tell which one it is"})
}

func has(name string) string    { return "has(self." + celName(name) + ")" }
func hasNot(name string) string { return "!" + has(name) }

// anyOf says that one of some fields is set.
func anyOf(names []string) string {
	if len(names) == 0 {
		return "false"
	}
	return strings.Join(each(names, has), " || ")
}

// each returns what a function makes of each name.
func each(names []string, of func(string) string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = of(name)
	}
	return out
}
