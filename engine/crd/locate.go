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

// LocateErrors returns errors of an API server about the CustomResourceDefinition that Generate
// returned for def, as [fault.Faults] whose faults have positions in the author's source. It
// returns nil when there are no errors. Package conform returns such errors.
func LocateErrors(def Definition, errs field.ErrorList) error {
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
func locate(def Definition, e *field.Error) fault.Fault {
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
		next, below := s.descend(v, at)
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

// positionOf returns the position of a value. It skips a bare {...}, which only says "a struct":
// the contract has one for every spec.
func positionOf(v cue.Value) token.Pos {
	if !v.Exists() {
		return token.NoPos
	}
	for _, l := range structLiterals(v) {
		_, open := firstDeclaration(l).(*ast.Ellipsis)
		if len(l.Elts) > 1 || len(l.Elts) == 1 && !open {
			return l.Pos()
		}
	}
	return v.Pos()
}

// firstDeclaration returns the first declaration of a literal, or nil.
func firstDeclaration(l *ast.StructLit) ast.Decl {
	if len(l.Elts) == 0 {
		return nil
	}
	return l.Elts[0]
}

// versionOf returns the version of the path of an error, and the rest of the path below the
// schema. If all versions share a schema, the path names none of them, and it is the storage
// version.
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

// A step is one level of a schema: the property called name, or else the elements of a list
// ("items") or of a map ("values").
type step struct{ name, elements string }

// schemaSteps parses a path such as .properties[spec].items, until it meets something else than
// a level of the schema. A path within a default leads to the fields that the default is for.
func schemaSteps(path string) []step {
	var out []step
	for {
		name, rest, found := strings.Cut(strings.TrimPrefix(path, ".properties["), "]")
		switch {
		case strings.HasPrefix(path, ".properties[") && found:
			out, path = append(out, step{name: name}), rest
		case strings.HasPrefix(path, ".items"):
			out, path = append(out, step{elements: "items"}), strings.TrimPrefix(path, ".items")
		case strings.HasPrefix(path, ".additionalProperties"):
			out, path = append(out, step{elements: "values"}), strings.TrimPrefix(path, ".additionalProperties")
		case strings.HasPrefix(path, defaultLabel):
			return append(out, valueSteps(strings.TrimPrefix(path, defaultLabel))...)
		default:
			return out
		}
	}
}

// valueSteps parses a path in a value, such as .topics[0].name.
func valueSteps(path string) []step {
	var out []step
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		name, rest, indexed := strings.Cut(name, "[")
		if name != "" {
			out = append(out, step{name: name})
		}
		if indexed && strings.Trim(rest, "0123456789]") == "" {
			out = append(out, step{elements: "items"})
		}
	}
	return out
}

// descend goes one level down from v.
func (s step) descend(v cue.Value, at location) (cue.Value, location) {
	switch s.elements {
	case "items":
		return at.elements().lookupIn(v, cue.AnyIndex)
	case "values":
		return at.values().lookupIn(v, cue.AnyString)
	}
	at = at.field(s.name)
	if next, at := at.lookupIn(v, cue.Str(s.name)); next.Exists() {
		return next, at
	}
	return at.lookupIn(v, cue.Str(s.name).Optional())
}

// lookupIn returns a member of v, which may not exist, and l.
func (l location) lookupIn(v cue.Value, sel cue.Selector) (cue.Value, location) {
	if !v.Exists() {
		return v, l
	}
	return v.LookupPath(cue.MakePath(sel)), l
}

// attributeWith returns the position of the attribute that contains a rule.
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
	visitOperands(v, func(v cue.Value, _ bool) {
		if f, ok := v.Source().(*ast.Field); ok {
			for _, a := range f.Attrs {
				match(a)
			}
		}
	})
	for _, l := range structLiterals(v) {
		for _, e := range l.Elts {
			if a, ok := e.(*ast.Attribute); ok {
				match(a)
			}
		}
	}
	return found
}
