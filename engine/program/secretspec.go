package program

import (
	"encoding/base64"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// What is in the Secrets of a package itself comes from its text, or from the custom
// resource. The text says which fields of the resource that are.

// withoutContent returns the faults of an object without what their messages show of
// its content, if it is a Secret or may be one.
func withoutContent(object cue.Value, faults fault.Faults) fault.Faults {
	if kind, err := object.LookupPath(cue.MakePath(cue.Str("kind"))).String(); err == nil && kind != secretKind {
		return faults
	}
	at := len(object.Path().Selectors())
	for i, f := range faults {
		if below := cue.ParsePath(f.Path).Selectors(); f.Code != fault.UnknownField && len(below) > at && isContent(below[at]) {
			faults[i].Message, faults[i].Hint = hiddenValue, ""
		}
	}
	return faults
}

func isContent(sel cue.Selector) bool {
	return sel.LabelType() == cue.StringLabel && slices.Contains(secretFields, sel.Unquoted())
}

// withoutLiterals returns the faults of a package without what they show of its Secrets.
func (p *Program) withoutLiterals(faults fault.Faults) fault.Faults {
	for i, f := range faults {
		sels := cue.ParsePath(f.Path).Selectors()
		inObject := len(sels) > 4 && sels[0] == cue.Str("components") && sels[2] == cue.Str("objects")
		if inObject {
			faults[i] = withoutContent(p.static.LookupPath(cue.MakePath(sels[:4]...)), fault.Faults{f})[0]
		}
		if quotes(f.Message, p.literals) {
			faults[i].Message, faults[i].Hint = hiddenValue, ""
		}
	}
	return faults
}

// secretsIn returns what is in the Secrets that were rendered, as it is and decoded.
func secretsIn(r Rollout) []string {
	var out []string
	for _, o := range r.secrets() {
		for _, field := range secretFields {
			content, _ := o.object.Manifest[field].(map[string]any)
			for _, v := range content {
				value := text(v)
				plain, err := base64.StdEncoding.DecodeString(value)
				if value != "" {
					out = append(out, value)
				}
				if err == nil && len(plain) > 0 {
					out = append(out, string(plain))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownSecret is a Secret that a package renders.
type ownSecret struct {
	component string
	object    Object
}

// secrets returns the Secrets of a rollout, and what may turn out to be one.
func (r Rollout) secrets() []ownSecret {
	all := slices.Clone(r.Components)
	for _, h := range r.Hooks {
		all = append(all, h.Component)
	}
	var out []ownSecret
	for _, c := range all {
		for _, o := range c.Objects {
			if o.Identity.Kind == secretKind || o.Identity.Kind == "" {
				out = append(out, ownSecret{c.Name, o})
			}
		}
	}
	return out
}

// secretSpec returns the fields of the custom resource that the package makes Secrets
// of: by its text as a whole, and for the Secrets that an evaluation shows.
func (p *Program) secretSpec(r Rollout) [][]string {
	out := slices.Clone(p.index.secretSpec)
	for _, s := range r.secrets() {
		out = append(out, p.index.specOf(s.component, s.object.Name)...)
	}
	return distinctPaths(out)
}

func distinctPaths(paths [][]string) [][]string {
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal)
}

// wholeSpec stands for all fields of the spec.
var wholeSpec = []string{"cr", "spec"}

// specOf returns the fields of the custom resource that an object of a component rests
// on, as far as the text tells: those that its content does, or else all of it, or else
// the component.
func (x *index) specOf(component, object string) [][]string {
	s := &secretText{index: x}
	of := s.component(component)
	objects := s.under(of, "objects", 0)
	declared := s.under(objects, object, 0)
	content := s.content(declared)
	switch {
	case len(of) == 0 || x.foreign:
		return [][]string{wholeSpec}
	case s.foreign || len(declared) == 0:
		return x.specIn(of)
	case len(content) == 0:
		return x.specIn(declared)
	}
	return x.specIn(content)
}

// specIn returns the fields of the custom resource that some members rest on.
func (x *index) specIn(members []member) [][]string {
	r := newReferences(x)
	r.follow, r.parameters, r.skip = true, true, isCondition
	for _, m := range members {
		r.member(m)
	}
	var out [][]string
	for _, ref := range r.found {
		switch {
		case ref.Path[0] != "cr":
		case len(ref.Path) == 1:
			out = append(out, wholeSpec)
		case ref.Path[1] == "spec", len(ref.Path) > 3 && ref.Path[1] == "metadata" && ref.Path[2] == "annotations":
			out = append(out, ref.Path)
		}
	}
	return distinctPaths(out)
}

// secretText looks for Secrets in the text of a package.
type secretText struct {
	index *index
	// foreign says that there is something from another package among what was looked
	// at that may be anything.
	foreign bool
}

// component returns where a component, or a hook, is written.
func (s *secretText) component(name string) []member {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "hooks" {
		return s.under(s.under(s.index.fields["hooks"], parts[1], 0), parts[2], 0)
	}
	return s.under(s.index.fields["components"], name, 0)
}

// under returns all that may be written for a field below some members.
func (s *secretText) under(at []member, name string, depth int) []member {
	var out []member
	for _, m := range at {
		eachMember(m.value, m.guards, func(d member) {
			switch d.kind {
			case named:
				if d.name == name {
					out = append(out, d)
				}
			case pattern, dynamic:
				out = append(out, d)
			case embedded:
				shown := s.index.standsFor(d.value, depth)
				s.foreign = s.foreign || len(shown) == 0 && !s.isType(d.value)
				out = append(out, s.under(shown, name, depth+1)...)
			}
		})
	}
	return out
}

// isType reports whether an expression is one of the Kubernetes types, or of the
// contract, which bring nothing.
func (s *secretText) isType(e ast.Expr) bool {
	root, _, _ := flatten(e)
	if e == nil || root == nil {
		return e == nil
	}
	spec, ok := root.Node.(*ast.ImportSpec)
	return ok && strings.HasPrefix(spec.Path.Value, `"operetta.dev/schemas/`) || !ok && len(s.index.declared(root)) == 0
}

// content returns what is written for the content of a Secret, and for the parameters
// of the template that it may come from.
func (s *secretText) content(declared []member) []member {
	var out []member
	for _, field := range secretFields {
		out = append(out, s.under(declared, field, 0)...)
	}
	if len(out) == 0 {
		return nil
	}
	for _, m := range declared {
		eachMember(m.value, m.guards, func(d member) {
			if d.kind == named && !isRegular(d.name) {
				out = append(out, d)
			}
		})
	}
	return out
}

// addSecrets records the Secrets that the text shows: which fields of the resource they
// rest on.
func (x *index) addSecrets(files []*ast.File) {
	x.addLabelled(files)
	for _, component := range x.order {
		for object := range x.names["components."+component+".objects"].names {
			s := &secretText{index: x}
			declared := s.under(s.under(s.component(component), "objects", 0), object, 0)
			if s.isSecret(declared) {
				x.secretSpec = append(x.secretSpec, x.specOf(component, object)...)
				x.secretContent = append(x.secretContent, s.content(declared)...)
			}
		}
	}
	x.secretSpec = distinctPaths(x.secretSpec)
}

// addLabelled records the hidden fields and definitions of all files.
func (x *index) addLabelled(files []*ast.File) {
	for _, f := range files {
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				if name, ok := literalLabel(field.Label); ok && !isRegular(name) {
					x.labelled[name] = append(x.labelled[name], member{kind: named, name: name, field: field, value: field.Value})
				}
			}
			return true
		}, nil)
	}
}

// isSecret reports whether the text says that an object is a Secret.
func (s *secretText) isSecret(declared []member) bool {
	for _, kind := range s.under(declared, "kind", 0) {
		if lit, ok := kind.value.(*ast.BasicLit); ok && unquoted(lit) == secretKind {
			return true
		}
	}
	is := false
	for _, m := range declared {
		eachMember(m.value, nil, func(d member) {
			if sel, ok := d.value.(*ast.SelectorExpr); ok && d.kind == embedded {
				name, _ := literalLabel(sel.Sel)
				is = is || name == "#"+secretKind
			}
		})
	}
	return is
}

// literalsOf returns the texts that are written out in some members.
func literalsOf(members []member) []string {
	var out []string
	for _, m := range members {
		if m.value == nil {
			continue
		}
		ast.Walk(m.value, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				out = append(out, literalsOf([]member{{value: f.Value}})...)
				return false // its label is no secret
			}
			if lit, ok := n.(*ast.BasicLit); ok && unquoted(lit) != "" {
				out = append(out, unquoted(lit))
			}
			return true
		}, nil)
	}
	return out
}

// unquoted returns the text of a literal, or "".
func unquoted(lit *ast.BasicLit) string {
	if lit.Kind != token.STRING {
		return ""
	}
	out, err := literal.Unquote(lit.Value)
	if err != nil {
		return "" // a part of an interpolation
	}
	return out
}
