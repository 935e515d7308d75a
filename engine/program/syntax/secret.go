package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
)

// SecretFields are the fields of a Secret that are secret.
var SecretFields = []string{"data", "stringData"}

// Secrets are what the text of a package shows of Secrets, and of what objects are made of.
type Secrets struct{ index *Index }

// Secrets returns what the text shows of Secrets.
func (x *Index) Secrets() Secrets { return Secrets{x} }

// Spec returns the fields of the custom resource that the package makes Secrets of,
// as far as the text shows Secrets.
func (s Secrets) Spec() [][]string { return s.index.secretSpec }

// Texts returns the texts that the package itself has written into its Secrets.
func (s Secrets) Texts() []string { return literalsOf(s.index.secretContent) }

// DistinctPaths returns each of some paths once, in order.
func DistinctPaths(paths [][]string) [][]string {
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal)
}

// wholeSpec stands for all fields of the spec.
var wholeSpec = []string{"cr", "spec"}

// SpecOf returns the fields of the custom resource from which the content of an object
// comes. Where the text does not show the content, the fields of the whole object count,
// or those of the component.
func (s Secrets) SpecOf(component, object string) [][]string {
	t := &secretText{index: s.index}
	of := t.component(component)
	declared := t.object(component, object)
	content := t.content(declared)
	switch {
	case len(of) == 0 || s.index.foreign:
		return [][]string{wholeSpec}
	case t.foreign || len(declared) == 0:
		return s.index.specIn(of)
	case len(content) == 0:
		return s.index.specIn(declared)
	}
	return s.index.specIn(content)
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
			out = append(out, wholeSpec)
		case ref.Path[1] == "spec", len(ref.Path) > 3 && ref.Path[1] == "metadata" && ref.Path[2] == "annotations":
			out = append(out, ref.Path)
		}
	}
	return DistinctPaths(out)
}

// secretText looks for Secrets in the text of a package.
type secretText struct {
	index *Index
	// foreign is true if another package adds members to a visited value. They may be
	// anything.
	foreign bool
}

// component returns where a component, or a hook, is written.
func (s *secretText) component(name string) []Member {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "hooks" {
		return s.under(s.under(s.index.fields["hooks"], parts[1]), parts[2])
	}
	return s.under(s.index.fields["components"], name)
}

// object returns where an object of a component is written.
func (s *secretText) object(component, name string) []Member {
	return s.under(s.under(s.component(component), "objects"), name)
}

// under returns all that may be written for a field below some members.
func (s *secretText) under(at []Member, name string) []Member {
	found := s.index.below(at, name, 0)
	s.foreign = s.foreign || slices.ContainsFunc(found.hidden, func(m Member) bool { return !s.isType(m.value) })
	return slices.Concat(found.named, found.others)
}

// isType reports whether an expression is one of the Kubernetes types, or of the
// contract, which bring nothing.
func (s *secretText) isType(e ast.Expr) bool {
	root := chainOf(e).root()
	if e == nil || root == nil {
		return e == nil
	}
	path := importedPath(root)
	return strings.HasPrefix(path, "operetta.dev/schemas/") || path == "" && len(s.index.declared(root)) == 0
}

// content returns the members of the content of a Secret, and of the parameters of its template.
func (s *secretText) content(declared []Member) []Member {
	var out []Member
	for _, field := range SecretFields {
		out = append(out, s.under(declared, field)...)
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
func (x *reader) addSecrets() {
	x.addLabelled()
	for _, component := range x.order {
		objects, _ := x.Names("components", component, "objects")
		for _, name := range objects {
			s := &secretText{index: x.Index}
			declared := s.object(component, name)
			if s.kindOf(declared) == object.SecretKind {
				x.secretSpec = append(x.secretSpec, x.Secrets().SpecOf(component, name)...)
				x.secretContent = append(x.secretContent, s.content(declared)...)
			}
		}
	}
	x.secretSpec = DistinctPaths(x.secretSpec)
}

// addLabelled records the hidden fields and definitions of all files.
func (x *reader) addLabelled() {
	for n := range NodesIn(x.files...) {
		if field, ok := n.(*ast.Field); ok {
			if m := memberOf(field, nil); !isRegular(m.name) {
				x.labelled[m.name] = append(x.labelled[m.name], m)
			}
		}
	}
}

// kindOf returns the kind of an object, or "" where the text does not have it. An object
// is a Secret if any of its declarations has that kind.
func (s *secretText) kindOf(declared []Member) string {
	out := ""
	for _, kind := range s.under(declared, "kind") {
		if lit, ok := kind.value.(*ast.BasicLit); ok && (out == "" || unquoted(lit) == object.SecretKind) {
			out = unquoted(lit)
		}
	}
	for _, m := range declared {
		for _, d := range m.Members() {
			if sel, ok := d.value.(*ast.SelectorExpr); ok && d.kind == embedded {
				if name, _ := literalLabel(sel.Sel); name == "#"+object.SecretKind {
					return object.SecretKind
				}
			}
		}
	}
	return out
}

// literalsOf returns the texts that are written out in some members, but for labels.
func literalsOf(members []Member) []string {
	var out []string
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			ast.Walk(n.Value, visit, nil)
			return false
		case *ast.BasicLit:
			if text := unquoted(n); text != "" {
				out = append(out, text)
			}
		}
		return true
	}
	for _, m := range members {
		if m.value != nil {
			ast.Walk(m.value, visit, nil)
		}
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

// at returns the members at a path.
func (s *secretText) at(path []string) []Member {
	out := s.index.fields[path[0]]
	for _, name := range path[1:] {
		out = s.under(out, name)
	}
	return out
}

// KindAt returns the kind of the object or input at a path, or "" where the text does not
// have it.
func (s Secrets) KindAt(path []string) string {
	t := &secretText{index: s.index}
	return t.kindOf(t.at(path))
}

// RestsOn returns the references on which an object of a component, or of a hook, may
// rest, and whether the text shows all of them.
func (s Secrets) RestsOn(component, object string) (refs []Reference, shown bool) {
	t := &secretText{index: s.index}
	from := t.component(component)
	declared := t.object(component, object)
	if !t.foreign && len(declared) > 0 {
		from = declared
	}
	return s.index.referencesIn(from), len(from) > 0 && !s.index.foreign
}

// IdentityRestsOn returns the references that the identity of an object may depend on. If the text
// does not have the identity, the references of the whole object count.
func (s Secrets) IdentityRestsOn(component, object string) []Reference {
	t := &secretText{index: s.index}
	declared := t.object(component, object)
	meta := t.under(declared, "metadata")
	name := t.under(meta, "name")
	if len(name) == 0 {
		name = meta
	}
	names := slices.Concat(t.under(declared, "apiVersion"), t.under(declared, "kind"), name, t.under(meta, "namespace"))
	if t.foreign || s.index.foreign || len(name) == 0 {
		names = declared
	}
	return s.index.referencesIn(names)
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
	return r.all()
}

// PathRestsOn returns the references on which the value at a path rests, and those to the config that it writes.
func (x *Index) PathRestsOn(path ...string) []Reference {
	members := x.at(path)
	out := x.referencesIn(members)
	for _, m := range members {
		if m.value == nil {
			continue
		}
		for _, id := range identsIn(m.value) {
			if fieldName(id) == "config" && atRoot(id) {
				out = append(out, Reference{Path: []string{"config"}, Position: fault.PositionAt(id.Pos())})
			}
		}
	}
	return out
}
