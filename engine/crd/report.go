package crd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"operetta.dev/engine/fault"
)

// Enforcement says who refuses what breaks a constraint.
type Enforcement string

const (
	// ByOpenAPI is the API server, by the schema of the definition.
	ByOpenAPI Enforcement = "OpenAPI"
	// ByCEL is the API server, by a rule.
	ByCEL Enforcement = "CEL"
	// ByCUE is the webhook of the operator, and without one the next reconcile.
	ByCUE Enforcement = "webhook"
)

// A Constraint is one that a spec has to satisfy.
type Constraint struct {
	// Path is the field, such as versions.v1.spec.replicas.
	Path string `json:"path"`
	// Text is what it has to satisfy, such as "at least 1".
	Text string      `json:"text"`
	By   Enforcement `json:"by"`
	// Why says why no API server enforces it, or is "".
	Why      string         `json:"why,omitempty"`
	Position fault.Position `json:"-"`
	// Place is the position as text.
	Place string `json:"position,omitempty"`
}

// Rules are what became of constraints over several fields.
type Rules struct {
	// Translated are rules of the definition.
	Translated []TranslatedRule
	// InCUE are the constraints that no definition has.
	InCUE []CUEOnlyConstraint
}

// GenerateWithRules returns what Generate does, with the rules that it has made.
func GenerateWithRules(def CustomResource) (*apiextensionsv1.CustomResourceDefinition, Rules, error) {
	g := &generator{}
	out, err := g.generate(def)
	return out, Rules{g.translated, g.inCUE}, err
}

// RemoveCostlyRules removes rules that it has made, as long as errors of an API server say that a rule costs too much, or all of
// them do. An author's rule is never removed. check returns the errors; package conform has such a function.
func RemoveCostlyRules(def CustomResource, crd *apiextensionsv1.CustomResourceDefinition, rules Rules, check func(*apiextensionsv1.CustomResourceDefinition) (field.ErrorList, error)) (Rules, error) {
	for len(rules.Translated) > 0 {
		errs, err := check(crd)
		if err != nil {
			return rules, err
		}
		at, costly := costlyRule(def, crd, rules, errs)
		if !costly {
			return rules, nil
		}
		r := rules.Translated[at]
		rules.Translated = slices.Delete(rules.Translated, at, at+1)
		rules.InCUE = append(rules.InCUE, CUEOnlyConstraint{Path: r.Path, Text: r.Rule, Why: "the API server estimates that the rule costs too much; a limit such as list.MaxItems or strings.MaxRunes makes it cheaper", pos: r.pos})
		eachStruct(crd, func(path string, s *schemaProps) {
			if path == r.Path {
				s.XValidations = slices.DeleteFunc(s.XValidations, func(v apiextensionsv1.ValidationRule) bool { return v.Rule == r.Rule })
			}
		})
	}
	return rules, nil
}

// costlyRule returns the index of a rule that costs too much, or else of the last one if all of them do together.
func costlyRule(def CustomResource, crd *apiextensionsv1.CustomResourceDefinition, rules Rules, errs field.ErrorList) (int, bool) {
	sum := false
	for _, e := range errs {
		if e.Type != field.ErrorTypeForbidden {
			continue
		}
		sum = true
		path := locate(def, e).Path
		_, rest, _ := strings.Cut(e.Field, "x-kubernetes-validations[")
		number, _, _ := strings.Cut(rest, "]")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		at := -1
		eachStruct(crd, func(there string, s *schemaProps) {
			if there == path && n < len(s.XValidations) {
				at = slices.IndexFunc(rules.Translated, func(t TranslatedRule) bool { return t.Path == path && t.Rule == s.XValidations[n].Rule })
			}
		})
		if at >= 0 {
			return at, true
		}
	}
	return len(rules.Translated) - 1, sum
}

// eachStruct calls a function with each schema of the specs of a definition, and the path of its field.
func eachStruct(crd *apiextensionsv1.CustomResourceDefinition, f func(path string, s *schemaProps)) {
	var visit func(at location, s *schemaProps)
	visit = func(at location, s *schemaProps) {
		f(at.path, s)
		for name, p := range s.Properties {
			visit(at.field(name), &p)
			s.Properties[name] = p
		}
		if s.Items != nil && s.Items.Schema != nil {
			visit(at.elements(), s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			visit(at.values(), s.AdditionalProperties.Schema)
		}
	}
	for _, v := range crd.Spec.Versions {
		if spec, has := v.Schema.OpenAPIV3Schema.Properties["spec"]; has {
			visit(root("versions."+v.Name).field("spec"), &spec)
			v.Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}
	}
}

func isWithin(path, around string) bool { return path == around || strings.HasPrefix(path, around+".") }

// Constraints returns the constraints of the specs of a definition that Generate returned, by version and field.
func Constraints(def CustomResource, crd *apiextensionsv1.CustomResourceDefinition, rules Rules) []Constraint {
	var out []Constraint
	for i, v := range crd.Spec.Versions {
		if i >= len(def.Versions) {
			break
		}
		spec, has := v.Schema.OpenAPIV3Schema.Properties["spec"]
		if !has {
			continue
		}
		at := root("versions." + v.Name).field("spec")
		at.pos = positionOf(def.Versions[i].Spec)
		l := &lister{rules: rules}
		if slices.Contains(v.Schema.OpenAPIV3Schema.Required, "spec") {
			l.add(at, ByOpenAPI, "required")
		}
		l.list(at, def.Versions[i].Spec, &spec)
		for _, c := range rules.InCUE {
			if isWithin(c.Path, at.path) {
				l.out = append(l.out, Constraint{Path: c.Path, Text: c.Text, By: ByCUE, Why: c.Why, Position: fault.PositionAt(c.pos)})
			}
		}
		out = append(out, l.out...)
	}
	for i := range out {
		out[i].Place = out[i].Position.String()
	}
	return out
}

// A lister lists the constraints of a schema.
type lister struct {
	rules Rules
	out   []Constraint
}

func (l *lister) add(at location, by Enforcement, text string) {
	l.out = append(l.out, Constraint{Path: at.path, Text: text, By: by, Position: fault.PositionAt(at.pos)})
}

// list lists the constraints of a value and of what is in it.
func (l *lister) list(at location, v cue.Value, s *schemaProps) {
	for _, text := range said(s) {
		l.add(at, ByOpenAPI, text)
	}
	l.listRules(at, v, s)
	if ptr.Deref(s.XPreserveUnknownFields, false) {
		l.out = append(l.out, Constraint{
			Path: at.path, Text: "what CUE says of fields without a schema", By: ByCUE, Why: "@crd(preserveUnknownFields) keeps them as they are", Position: fault.PositionAt(at.pos),
		})
	}
	below := func(st step, inner *schemaProps) {
		next, there := v, at
		if v.Exists() {
			next, there = st.descend(v, at)
		}
		if pos := positionOf(next); pos.IsValid() {
			there.pos = pos
		}
		if st.name != "" && slices.Contains(s.Required, st.name) {
			l.add(there, ByOpenAPI, "required")
		}
		l.list(there, next, inner)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		below(step{name: name}, &p)
	}
	if s.Items != nil && s.Items.Schema != nil {
		below(step{elements: "items"}, s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		below(step{elements: "values"}, s.AdditionalProperties.Schema)
	}
}

// listRules lists the rules of a struct or field.
func (l *lister) listRules(at location, v cue.Value, s *schemaProps) {
	for _, r := range s.XValidations {
		here := at
		made := slices.IndexFunc(l.rules.Translated, func(t TranslatedRule) bool { return t.Path == at.path && t.Rule == r.Rule })
		switch {
		case made >= 0:
			here.pos = l.rules.Translated[made].pos
		case v.Exists() && attributeWith(v, r.Rule).IsValid():
			here.pos = attributeWith(v, r.Rule)
		}
		text := r.Rule
		if r.Message != "" {
			text = strings.TrimSuffix(r.Message, ".") + ": " + r.Rule
		}
		l.add(here, ByCEL, text)
	}
}

// said returns what a schema says of a value itself, in words.
func said(s *schemaProps) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case s.XIntOrString:
		add("integer or string")
	case s.Type != "":
		add("%s", s.Type)
	}
	if len(s.Enum) > 0 {
		add("one of %s", values(s.Enum))
	}
	bound := func(n *float64, exclusive bool, inclusiveText, exclusiveText string) {
		switch {
		case n == nil:
		case exclusive:
			add("%s %v", exclusiveText, *n)
		default:
			add("%s %v", inclusiveText, *n)
		}
	}
	bound(s.Minimum, s.ExclusiveMinimum, "at least", "more than")
	bound(s.Maximum, s.ExclusiveMaximum, "at most", "less than")
	bound(s.MultipleOf, false, "a multiple of", "")
	out = append(out, sizes(s)...)
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Format != "" {
		add("format %s", s.Format)
	}
	if s.Not != nil {
		add("not: %s", strings.Join(said(s.Not), ", "))
	}
	for i := range s.AllOf {
		out = append(out, said(&s.AllOf[i])...)
	}
	if len(s.AnyOf) > 0 {
		var arms []string
		for i := range s.AnyOf {
			arms = append(arms, strings.Join(said(&s.AnyOf[i]), ", "))
		}
		add("%s", strings.Join(arms, ", or "))
	}
	if list := ptr.Deref(s.XListType, ""); list == "set" {
		add("items differ")
	} else if list == "map" {
		add("items differ in %s", strings.Join(s.XListMapKeys, ", "))
	}
	return out
}

// sizes returns what a schema says of the size of a value, in words, whose nouns are written in the singular here.
func sizes(s *schemaProps) []string {
	var out []string
	for _, c := range []struct {
		n    *int64
		text string
	}{
		{s.MinLength, "at least %d character"},
		{s.MaxLength, "at most %d character"},
		{s.MinItems, "at least %d item"},
		{s.MaxItems, "at most %d item"},
		{s.MinProperties, "at least %d field"},
		{s.MaxProperties, "at most %d field"},
	} {
		switch {
		case c.n == nil:
		case *c.n == 1:
			out = append(out, fmt.Sprintf(c.text, *c.n))
		default:
			out = append(out, fmt.Sprintf(c.text+"s", *c.n))
		}
	}
	return out
}

// values returns JSON values as a list.
func values(all []apiextensionsv1.JSON) string {
	var out []string
	for _, v := range all {
		out = append(out, string(v.Raw))
	}
	return strings.Join(out, ", ")
}
