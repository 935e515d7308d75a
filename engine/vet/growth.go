package vet

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// growth warns of evaluations whose cost a user decides without a limit.
func growth(v *view) fault.Faults { return Growths(v.Program) }

// Growths returns where a user decides without a limit what an evaluation costs: anyone who may create one
// resource could take time and memory from all others. It does not know the content of live objects
// and inputs.
func Growths(p *program.Program) fault.Faults {
	given := map[string]syntax.UserValue{"cr": {Schema: p.Static().CRSchema(), Limits: limitsOfSpec}, "config": {Schema: p.Config().Schema(), Limits: limitsOfConfig}}
	var out fault.Faults
	for _, g := range p.Syntax().Growths(given) {
		message, warned := judge(g)
		if !warned {
			continue
		}
		out = append(out, fault.Fault{Position: g.Position, Path: g.Amount.From, Message: message, Hint: limitHint(g)})
	}
	return out
}

// limitsOfSpec returns the limits that the CRD has for a field. That of which it can express nothing is a fault by itself.
func limitsOfSpec(schema cue.Value, within int) syntax.Interval {
	if crd.FieldSchema(schema) == nil {
		return syntax.Interval{Finite: true}
	}
	return syntax.Interval(crd.LimitsOf(schema, within))
}

// limitsOfConfig returns the limits that the author has written: no API server enforces others. But a
// configuration has to fit into one ConfigMap or annotation, so a single loop over it is cheap, and
// only nested loops are not.
func limitsOfConfig(schema cue.Value, _ int) syntax.Interval {
	out := syntax.Interval(crd.DeclaredLimitsOf(schema))
	if schema.IncompleteKind()&cue.NumberKind == 0 {
		out.High = min(out.High, syntax.MaxGrowth)
	}
	return out
}

const template = "text/template.Execute"

// judge returns the warning about a growth, and whether there is one.
func judge(g syntax.Growth) (string, bool) {
	what := path.Base(g.Function)
	switch {
	case g.Function == template:
		return "the text of " + what + " comes from the user, and a template can run forever", !g.Amount.Finite
	case !g.Amount.MayExceed(limitOf(g.Function)):
		return "", false
	case math.IsInf(g.Amount.High, 1) || math.IsInf(g.Amount.Low, -1):
		return g.Source + " grows with it" + besides(g) + ", and it has no limit", true
	}
	return fmt.Sprintf("%s grows with it%s, up to %.15g steps", g.Source, besides(g), max(g.Amount.High, -g.Amount.Low)), true
}

// besides names the fields that a growth depends on besides the one that it is reported of.
func besides(g syntax.Growth) string {
	var out strings.Builder
	for _, f := range g.Factors {
		if f.From != g.Amount.From {
			out.WriteString(" and " + f.From)
		}
	}
	return out.String()
}

// limitOf returns the amount up to which a function takes at most some hundred milliseconds.
func limitOf(function string) float64 {
	switch path.Base(function) {
	case "strings.Repeat":
		return 1 << 20
	case "json.Unmarshal", "json.UnmarshalStream", "yaml.Unmarshal", "yaml.UnmarshalStream":
		return 1 << 16
	}
	return syntax.MaxGrowth
}

// limitHint says how to limit the field that a growth depends on.
func limitHint(g syntax.Growth) string {
	kind := g.Amount.Kind
	switch {
	case len(g.Factors) > 1:
		return limitsHint(g.Factors)
	case g.Function == template:
		return "let the user choose among texts of the package, or interpolate them"
	case kind&cue.StringKind != 0 && slices.Contains([]string{"list.Range", "list.Repeat", "math/bits.Lsh"}, g.Function):
		return "make it a number with limits, as in int & >=1 & <=100"
	case kind&cue.ListKind != 0:
		return "add a limit, as in [...string] & list.MaxItems(100)"
	case kind&cue.StructKind != 0:
		return "add a limit, as in {[string]: string} & struct.MaxFields(100)"
	case kind&cue.StringKind != 0:
		return "add a limit, as in string & strings.MaxRunes(1000)"
	}
	return "add limits, as in int & >=1 & <=100"
}

// limitsHint says how to limit fields whose sizes multiply, so that their product is small. What is smaller already is left out.
func limitsHint(factors []syntax.Amount) string {
	each := math.Floor(math.Pow(syntax.MaxGrowth, 1/float64(len(factors))))
	var limits []string
	for _, f := range factors {
		switch {
		case f.High <= each:
		case f.Kind&cue.ListKind != 0:
			limits = append(limits, fmt.Sprintf("list.MaxItems(%.0f) for %s", each, f.From))
		case f.Kind&cue.StructKind != 0:
			limits = append(limits, fmt.Sprintf("struct.MaxFields(%.0f) for %s", each, f.From))
		case f.Kind&cue.StringKind != 0:
			limits = append(limits, fmt.Sprintf("strings.MaxRunes(%.0f) for %s", each, f.From))
		default:
			limits = append(limits, fmt.Sprintf("<=%.0f for %s", each, f.From))
		}
	}
	return "add limits, as in " + strings.Join(limits, ", ")
}
