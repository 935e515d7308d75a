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
)

// Refused returns why an API server refuses the CustomResourceDefinition that Generate made
// of def, as [fault.Faults] with the place of each field that its author wrote. It returns nil
// when there are no errors. Package conform has them.
func Refused(def Definition, errs field.ErrorList) error {
	var faults []fault.Fault
	costly := map[string]bool{}
	for _, e := range errs {
		if e.Type == field.ErrorTypeForbidden && costly[e.Field] {
			continue // a rule that costs too much also adds to a sum that is too large
		}
		costly[e.Field] = e.Type == field.ErrorTypeForbidden
		f := place(def, e)
		f.Message = "the API server refuses it in a CustomResourceDefinition: " + problem(e)
		// A default is part of those of the structs around it, and refused in each.
		if !slices.ContainsFunc(faults, func(o fault.Fault) bool { return o.Path == f.Path && o.Message == f.Message }) {
			faults = append(faults, f)
		}
	}
	return merged(faults)
}

// problem is what an error says, on one line, without the value that it is about: of a
// default, that is the Go form of a map.
func problem(e *field.Error) string {
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

// defaultLabel is how the path of a default begins, behind that of its field.
const defaultLabel = ".default"

// place finds the field of the author that an error is about. An error of another part, such
// as the names of the kind, has no place.
func place(def Definition, e *field.Error) fault.Fault {
	version, rest := versionOf(def, e.Field)
	if version == nil {
		return fault.Fault{Path: e.Field}
	}
	at := root("versions." + version.Name)
	names := steps(rest)
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
		next, below := s.from(v, at)
		at = below
		if pos := positionOf(next); pos.IsValid() {
			at.pos = pos
		}
		v = next
	}
	if rule, ok := ruleOf(e); ok {
		if pos := attributeWith(v, rule); pos.IsValid() {
			at.pos = pos
		}
	}
	return faultAt(at.pos, at.path, "", "")
}

// positionOf returns where a value is written. A bare {...} says no more than "a struct":
// the contract says it of every spec.
func positionOf(v cue.Value) token.Pos {
	if !v.Exists() {
		return token.NoPos
	}
	for _, l := range literals(v) {
		_, open := first(l).(*ast.Ellipsis)
		if len(l.Elts) > 1 || len(l.Elts) == 1 && !open {
			return l.Pos()
		}
	}
	return v.Pos()
}

// first returns the first declaration of a literal, or nil.
func first(l *ast.StructLit) ast.Decl {
	if len(l.Elts) == 0 {
		return nil
	}
	return l.Elts[0]
}

// versionOf returns the version that the path of an error is in, and the path from its
// schema on. A schema that all versions share is reported at none of them.
func versionOf(def Definition, path string) (*Version, string) {
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

// A step is one level of a schema: a property of a name, or else what all elements of a
// list or all values of a map are.
type step struct{ name, all string }

// steps reads the levels of a path such as .properties[spec].items, as far as it goes down.
// What is in a default is at the same place as what it is a default of.
func steps(path string) []step {
	var out []step
	for {
		name, rest, found := strings.Cut(strings.TrimPrefix(path, ".properties["), "]")
		switch {
		case strings.HasPrefix(path, ".properties[") && found:
			out, path = append(out, step{name: name}), rest
		case strings.HasPrefix(path, ".items"):
			out, path = append(out, step{all: "items"}), strings.TrimPrefix(path, ".items")
		case strings.HasPrefix(path, ".additionalProperties"):
			out, path = append(out, step{all: "values"}), strings.TrimPrefix(path, ".additionalProperties")
		case strings.HasPrefix(path, defaultLabel):
			return append(out, stepsOfData(strings.TrimPrefix(path, defaultLabel))...)
		default:
			return out
		}
	}
}

// stepsOfData reads the levels of a path in a value, such as .topics[0].name.
func stepsOfData(path string) []step {
	var out []step
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		name, rest, indexed := strings.Cut(name, "[")
		if name != "" {
			out = append(out, step{name: name})
		}
		if indexed && strings.Trim(rest, "0123456789]") == "" {
			out = append(out, step{all: "items"})
		}
	}
	return out
}

// from goes one level down.
func (s step) from(v cue.Value, at site) (cue.Value, site) {
	switch s.all {
	case "items":
		return at.elements().lookup(v, cue.AnyIndex)
	case "values":
		return at.values().lookup(v, cue.AnyString)
	}
	at = at.field(s.name)
	if next, at := at.lookup(v, cue.Str(s.name)); next.Exists() {
		return next, at
	}
	return at.lookup(v, cue.Str(s.name).Optional())
}

// lookup returns what is below v, which may not exist, and s.
func (s site) lookup(v cue.Value, sel cue.Selector) (cue.Value, site) {
	if !v.Exists() {
		return v, s
	}
	return v.LookupPath(cue.MakePath(sel)), s
}

// attributeWith returns where an attribute with some rule is written.
func attributeWith(v cue.Value, rule string) token.Pos {
	found := token.NoPos
	match := func(a *ast.Attribute) {
		if strings.Contains(a.Text, rule) && !found.IsValid() {
			found = a.Pos()
		}
	}
	if !v.Exists() {
		return found
	}
	spread(v, func(v cue.Value, _ bool) {
		if f, ok := v.Source().(*ast.Field); ok {
			for _, a := range f.Attrs {
				match(a)
			}
		}
	})
	for _, l := range literals(v) {
		for _, e := range l.Elts {
			if a, ok := e.(*ast.Attribute); ok {
				match(a)
			}
		}
	}
	return found
}
