package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// SecretKind is the kind of a Secret.
const SecretKind = "Secret"

// SecretFields are the fields of a Secret that are secret.
var SecretFields = []string{"data", "stringData"}

// SecretSpec returns the fields of the custom resource that the package makes Secrets of,
// as far as the text shows Secrets.
func (x *Index) SecretSpec() [][]string { return x.secretSpec }

// SecretTexts returns the texts that the package itself has written into its Secrets.
func (x *Index) SecretTexts() []string { return literalsOf(x.secretContent) }

// DistinctPaths returns each of some paths once, in order.
func DistinctPaths(paths [][]string) [][]string {
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal)
}

// WholeSpec stands for all fields of the spec.
var WholeSpec = []string{"cr", "spec"}

// SpecOf returns the fields of the custom resource that an object of a component rests
// on, as far as the text tells: those that its content does, or else all of it, or else
// the component.
func (x *Index) SpecOf(component, object string) [][]string {
	s := &secretText{index: x}
	of := s.component(component)
	objects := s.under(of, "objects", 0)
	declared := s.under(objects, object, 0)
	content := s.content(declared)
	switch {
	case len(of) == 0 || x.foreign:
		return [][]string{WholeSpec}
	case s.foreign || len(declared) == 0:
		return x.specIn(of)
	case len(content) == 0:
		return x.specIn(declared)
	}
	return x.specIn(content)
}

// specIn returns the fields of the custom resource that some members rest on.
func (x *Index) specIn(members []Member) [][]string {
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
			out = append(out, WholeSpec)
		case ref.Path[1] == "spec", len(ref.Path) > 3 && ref.Path[1] == "metadata" && ref.Path[2] == "annotations":
			out = append(out, ref.Path)
		}
	}
	return DistinctPaths(out)
}

// secretText looks for Secrets in the text of a package.
type secretText struct {
	index *Index
	// foreign says that there is something from another package among what was looked
	// at that may be anything.
	foreign bool
}

// component returns where a component, or a hook, is written.
func (s *secretText) component(name string) []Member {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "hooks" {
		return s.under(s.under(s.index.fields["hooks"], parts[1], 0), parts[2], 0)
	}
	return s.under(s.index.fields["components"], name, 0)
}

// under returns all that may be written for a field below some members.
func (s *secretText) under(at []Member, name string, depth int) []Member {
	var out []Member
	for _, m := range at {
		eachMember(m.value, m.guards, func(d Member) {
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
func (s *secretText) content(declared []Member) []Member {
	var out []Member
	for _, field := range SecretFields {
		out = append(out, s.under(declared, field, 0)...)
	}
	if len(out) == 0 {
		return nil
	}
	for _, m := range declared {
		eachMember(m.value, m.guards, func(d Member) {
			if d.kind == named && !isRegular(d.name) {
				out = append(out, d)
			}
		})
	}
	return out
}

// addSecrets records the Secrets that the text shows: which fields of the resource they
// rest on.
func (x *Index) addSecrets(files []*ast.File) {
	x.addLabelled(files)
	for _, component := range x.order {
		for object := range x.names["components."+component+".objects"].names {
			s := &secretText{index: x}
			declared := s.under(s.under(s.component(component), "objects", 0), object, 0)
			if s.isSecret(declared) {
				x.secretSpec = append(x.secretSpec, x.SpecOf(component, object)...)
				x.secretContent = append(x.secretContent, s.content(declared)...)
			}
		}
	}
	x.secretSpec = DistinctPaths(x.secretSpec)
}

// addLabelled records the hidden fields and definitions of all files.
func (x *Index) addLabelled(files []*ast.File) {
	for _, f := range files {
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				if name, ok := literalLabel(field.Label); ok && !isRegular(name) {
					x.labelled[name] = append(x.labelled[name], Member{kind: named, name: name, field: field, value: field.Value})
				}
			}
			return true
		}, nil)
	}
}

// isSecret reports whether the text says that an object is a Secret.
func (s *secretText) isSecret(declared []Member) bool {
	for _, kind := range s.under(declared, "kind", 0) {
		if lit, ok := kind.value.(*ast.BasicLit); ok && unquoted(lit) == SecretKind {
			return true
		}
	}
	is := false
	for _, m := range declared {
		eachMember(m.value, nil, func(d Member) {
			if sel, ok := d.value.(*ast.SelectorExpr); ok && d.kind == embedded {
				name, _ := literalLabel(sel.Sel)
				is = is || name == "#"+SecretKind
			}
		})
	}
	return is
}

// literalsOf returns the texts that are written out in some members.
func literalsOf(members []Member) []string {
	var out []string
	for _, m := range members {
		if m.value == nil {
			continue
		}
		ast.Walk(m.value, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				out = append(out, literalsOf([]Member{{value: f.Value}})...)
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

// at returns what is written at a path.
func (s *secretText) at(path []string) []Member {
	out := s.index.fields[path[0]]
	for _, name := range path[1:] {
		out = s.under(out, name, 0)
	}
	return out
}

// KindAt returns the kind of the object or input at a path, or "" where the text does not
// have it.
func (x *Index) KindAt(path []string) string {
	s := &secretText{index: x}
	declared := s.at(path)
	if s.isSecret(declared) {
		return SecretKind
	}
	for _, kind := range s.under(declared, "kind", 0) {
		if lit, ok := kind.value.(*ast.BasicLit); ok {
			return unquoted(lit)
		}
	}
	return ""
}

// RestsOn returns the references on which an object of a component, or of a hook, may
// rest, and whether the text shows all of them.
func (x *Index) RestsOn(component, object string) (refs []Reference, shown bool) {
	s := &secretText{index: x}
	from := s.component(component)
	declared := s.under(s.under(from, "objects", 0), object, 0)
	if !s.foreign && len(declared) > 0 {
		from = declared
	}
	return x.referencesIn(from), len(from) > 0 && !x.foreign
}

// IdentityRestsOn returns the references of which the identity of an object may be made.
// Where the text does not have the identity, the whole object counts.
func (x *Index) IdentityRestsOn(component, object string) []Reference {
	s := &secretText{index: x}
	declared := s.under(s.under(s.component(component), "objects", 0), object, 0)
	meta := s.under(declared, "metadata", 0)
	name := s.under(meta, "name", 0)
	if len(name) == 0 {
		name = meta
	}
	names := slices.Concat(s.under(declared, "apiVersion", 0), s.under(declared, "kind", 0), name, s.under(meta, "namespace", 0))
	if s.foreign || x.foreign || len(name) == 0 {
		names = declared
	}
	return x.referencesIn(names)
}

// FieldRestsOn returns the references on which a field of the root rests.
func (x *Index) FieldRestsOn(name string) []Reference { return x.referencesIn(x.fields[name]) }

// referencesIn returns the references in some members, also by way of other names and of
// the parameters of templates.
func (x *Index) referencesIn(members []Member) []Reference {
	r := newReferences(x)
	r.follow, r.parameters = true, true
	for _, m := range members {
		r.member(m)
	}
	out := make([]Reference, len(r.found))
	for i, f := range r.found {
		out[i] = f.Reference
	}
	return out
}
