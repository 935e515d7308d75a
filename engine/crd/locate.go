package crd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/fieldpath"
)

// LocateErrors returns errors of an API server about the CustomResourceDefinition that Generate
// returned for def, as [fault.Faults] whose faults have positions in the author's source. It
// returns nil when there are no errors. Package conform returns such errors.
func LocateErrors(def CustomResource, errs field.ErrorList) error {
	var faults []fault.Fault
	costly := map[string]bool{}
	for _, e := range errs {
		if e.Type == field.ErrorTypeForbidden && costly[e.Field] {
			continue // a rule that costs too much also adds to a sum that is too large
		}
		costly[e.Field] = e.Type == field.ErrorTypeForbidden
		f := locate(def, e)
		f.Message = "the API server refuses it in a CustomResourceDefinition: " + problemOf(e)
		// A default is part of the defaults of the structs around it, and has an error in each.
		if !slices.ContainsFunc(faults, func(o fault.Fault) bool { return o.Path == f.Path && o.Message == f.Message }) {
			faults = append(faults, f)
		}
	}
	return merged(faults)
}

// problemOf returns the message of an error on one line, without the value: the value of a
// default is a Go map.
func problemOf(e *field.Error) string {
	what, _, _ := strings.Cut(e.Detail, "\n")
	if what == "" {
		what = strings.ToLower(e.Type.String())
	}
	if rule, ok := ruleOf(e); ok {
		return fmt.Sprintf("the rule %q: %s", rule, what)
	}
	if strings.Contains(e.Field, defaultLabel) {
		return "the default: " + what
	}
	return what
}

// ruleOf returns the rule that an error is about.
func ruleOf(e *field.Error) (string, bool) {
	rule, ok := e.BadValue.(string)
	return rule, ok && rule != "" && strings.HasSuffix(e.Field, "].rule")
}

// defaultLabel separates the path of a field from a path within its default.
const defaultLabel = ".default"

// locate returns a fault with the path and position of the field that an error is about. An
// error about another part, such as the names of the kind, has no position.
func locate(def CustomResource, e *field.Error) fault.Fault {
	version, rest := versionOf(def, e.Field)
	if version == nil {
		return fault.Fault{Path: e.Field}
	}
	at := root("versions." + version.Name)
	names := schemaSteps(rest)
	if len(names) == 0 {
		return faultAt(positionOf(version.Spec), at.path, "", "")
	}
	v := version.Spec
	if names[0].name == "status" {
		v = version.Status
	}
	at = at.field(names[0].name)
	at.pos = positionOf(v)
	for _, s := range names[1:] {
		v, at = s.descend(v, at)
		if pos := positionOf(v); pos.IsValid() {
			at.pos = pos
		}
	}
	if rule, ok := ruleOf(e); ok {
		if pos := attributeWith(v, rule); pos.IsValid() {
			at.pos = pos
		}
	}
	return faultAt(at.pos, at.path, "", "")
}

// positionOf returns the position of a value. It skips a bare {...}, which only says "a struct":
// the contract has one for every spec.
func positionOf(v cue.Value) token.Pos {
	if !v.Exists() {
		return token.NoPos
	}
	for _, l := range structLiterals(v) {
		if len(l.Elts) == 1 {
			if _, open := l.Elts[0].(*ast.Ellipsis); open {
				continue
			}
		}
		if len(l.Elts) > 0 {
			return l.Pos()
		}
	}
	return v.Pos()
}

// versionOf returns the version of the path of an error, and the rest of the path below the
// schema. If all versions share a schema, the path names none of them, and it is the storage
// version.
func versionOf(def CustomResource, path string) (*Version, string) {
	head, rest, found := strings.Cut(path, "openAPIV3Schema")
	if !found {
		return nil, ""
	}
	index, _, numbered := strings.Cut(strings.TrimPrefix(head, "spec.versions["), "]")
	if n, err := strconv.Atoi(index); numbered && err == nil && n < len(def.Versions) {
		return &def.Versions[n], rest
	}
	for i, v := range def.Versions {
		if v.Storage {
			return &def.Versions[i], rest
		}
	}
	return nil, ""
}

// A step is one level of a schema: the property called name, or else the elements of a list
// ("items") or of a map ("values").
type step struct{ name, elements string }

// schemaSteps parses a path such as .properties[spec].items, until it meets something else than
// a level of the schema. A path within a default leads to the fields that the default is for.
func schemaSteps(path string) []step {
	var out []step
	for parts := fieldpath.Parse(path); len(parts) > 0; parts = parts[1:] {
		switch {
		case parts[0].Field == "properties" && len(parts) > 1:
			out, parts = append(out, step{name: parts[1].Element}), parts[1:]
		case parts[0].Field == "items":
			out = append(out, step{elements: "items"})
		case parts[0].Field == "additionalProperties":
			out = append(out, step{elements: "values"})
		case parts[0].Field == "default":
			return append(out, valueSteps(parts[1:])...)
		default:
			return out
		}
	}
	return out
}

// valueSteps returns the steps of a path in a value, such as .topics[0].name.
func valueSteps(parts []fieldpath.Part) []step {
	var out []step
	for _, p := range parts {
		if p.Field != "" {
			out = append(out, step{name: p.Field})
		} else if _, indexed := p.Index(); indexed {
			out = append(out, step{elements: "items"})
		}
	}
	return out
}

// descend returns the value one level below v, which may not exist, and its location.
func (s step) descend(v cue.Value, at location) (cue.Value, location) {
	switch s.elements {
	case "items":
		return v.LookupPath(cue.MakePath(cue.AnyIndex)), at.elements()
	case "values":
		return v.LookupPath(cue.MakePath(cue.AnyString)), at.values()
	}
	field := v.LookupPath(cue.MakePath(cue.Str(s.name)))
	if !field.Exists() {
		field = v.LookupPath(cue.MakePath(cue.Str(s.name).Optional()))
	}
	return field, at.field(s.name)
}

// attributeWith returns the position of the first attribute that contains a rule.
func attributeWith(v cue.Value, rule string) token.Pos {
	if !v.Exists() {
		return token.NoPos
	}
	var attributes []*ast.Attribute
	for to := range operands(v, nil) {
		if f, ok := to.Source().(*ast.Field); ok {
			attributes = append(attributes, f.Attrs...)
		}
	}
	for _, l := range structLiterals(v) {
		for _, e := range l.Elts {
			if a, ok := e.(*ast.Attribute); ok {
				attributes = append(attributes, a)
			}
		}
	}
	for _, a := range attributes {
		if strings.Contains(a.Text, rule) {
			return a.Pos()
		}
	}
	return token.NoPos
}
