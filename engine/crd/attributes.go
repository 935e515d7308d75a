package crd

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// attributes are the contents of the @crd attributes of a field.
type attributes struct {
	preserve, immutable bool
	listType            string
	listMapKeys         []string
	rules               []apiextensionsv1.ValidationRule
}

const knownArguments = "preserveUnknownFields, immutable, listType, listMapKey, rule, message"

// readAttributes reads the attributes of v and of the definitions that it refers to, so that
// an attribute on a definition applies to all fields of that type. It follows the references
// for which follow is true; nil follows all.
func (g *generator) readAttributes(at location, v cue.Value, follow func(reference cue.Value) bool) attributes {
	var m attributes
	seen := map[string]bool{}
	for to, referred := range operands(v, follow) {
		if to != v && !referred {
			continue
		}
		for _, a := range to.Attributes(cue.ValueAttr) {
			if a.Name() == "crd" && !seen[a.Contents()] {
				seen[a.Contents()] = true
				g.readAttribute(at, &m, a)
			}
		}
	}
	return m
}

func (g *generator) readAttribute(at location, m *attributes, a cue.Attribute) {
	var rule apiextensionsv1.ValidationRule
	for i := range a.NumArgs() {
		key, value := a.Arg(i)
		switch {
		case key == "preserveUnknownFields" && value == "":
			m.preserve = true
		case key == "immutable" && value == "":
			m.immutable = true
		case key == "listType" && slices.Contains([]string{"atomic", "set", "map"}, value):
			m.listType = value
		case key == "listType":
			g.fault(at, fmt.Sprintf("@crd: unknown listType %q", value), "write atomic, set or map")
		case key == "listMapKey" && value != "":
			m.listMapKeys = append(m.listMapKeys, value)
		case key == "rule" && value != "":
			rule.Rule = value
		case key == "message" && value != "":
			rule.Message = value
		default:
			g.fault(at, fmt.Sprintf("@crd: unknown argument %q", a.RawArg(i)), "write one of "+knownArguments)
		}
	}
	switch {
	case rule.Rule != "":
		m.rules = append(m.rules, rule)
	case rule.Message != "":
		g.fault(at, "@crd: a message without a rule", `write both in one attribute: @crd(rule="…", message="…")`)
	}
}

// applyAttributes applies the attributes that concern validation and merging.
func (g *generator) applyAttributes(at location, schema *schemaProps, m attributes) {
	if m.immutable {
		m.rules = append(m.rules, apiextensionsv1.ValidationRule{Rule: "self == oldSelf", Message: "is immutable"})
	}
	for _, r := range m.rules {
		if at.atomic && strings.Contains(r.Rule, "oldSelf") {
			g.fault(at, "the API server cannot compare an element of this list with its old value",
				"write @crd(listType=map, listMapKey=name) on the list, or make the whole list immutable")
			continue
		}
		schema.XValidations = append(schema.XValidations, r)
	}
	g.setListType(at, schema, m)
}

// setListType sets how server-side apply merges a list.
func (g *generator) setListType(at location, schema *schemaProps, m attributes) {
	if m.listType == "" && m.listMapKeys == nil {
		return
	}
	switch {
	case schema.Type != "array":
		g.fault(at, "@crd: listType and listMapKey are for lists", "")
		return
	case (m.listType == "map") != (m.listMapKeys != nil):
		g.fault(at, "@crd: listType=map and listMapKey need each other", "write @crd(listType=map, listMapKey=name)")
		return
	case m.listType == "set" && schema.Items.Schema.Type == "object":
		g.fault(at, "@crd: the elements of a set cannot be structs", "write @crd(listType=map, listMapKey=name)")
		return
	}
	schema.XListType = &m.listType
	schema.XListMapKeys = m.listMapKeys
	for _, key := range m.listMapKeys {
		property, ok := schema.Items.Schema.Properties[key]
		if !ok || property.Default == nil && !slices.Contains(schema.Items.Schema.Required, key) {
			g.fault(at, fmt.Sprintf("@crd: the elements may lack the listMapKey %s", key), fmt.Sprintf("declare %s!: string in the struct", key))
		}
	}
}

// forbidRemoval closes a loophole of an immutable optional field: a user could remove it and
// add it again with another value. A rule on the field itself is not evaluated for either step.
func forbidRemoval(parent *schemaProps, name string, property *schemaProps) {
	immutable := slices.ContainsFunc(property.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == "self == oldSelf" })
	if !immutable {
		return
	}
	parent.XValidations = append(parent.XValidations, apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf("!has(oldSelf.%[1]s) || has(self.%[1]s)", celName(name)),
		Message: name + " is immutable and cannot be removed",
	})
}

var celReserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
}

// celPath writes a.b-c as rules spell it.
func celPath(path string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		names[i] = celName(strings.Trim(name, `"`))
	}
	return strings.Join(names, ".")
}

// celName writes a property name as CEL rules of Kubernetes spell it.
func celName(name string) string {
	if slices.Contains(celReserved, name) {
		return "__" + name + "__"
	}
	return strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__").Replace(name)
}
