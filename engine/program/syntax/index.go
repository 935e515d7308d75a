package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// An index is what the text of a package says before any evaluation: where its
// root fields are written, and which references each component makes. Evaluation
// cannot tell that: an expression that waits for a live object has no value, and
// a value does not know the file and line of what it refers to.
type Index struct {
	root fault.Position
	// fields holds the declarations of each root field, over all files.
	fields map[string][]Member
	// bodies holds what is written for each component that has a literal name.
	bodies map[string][]Member
	// anyBody is what is written for components by pattern, and dynamicBody for
	// those whose names only an evaluation knows.
	anyBody, dynamicBody []Member
	// homes is what is written for each component and hook, those of computed names under
	// ComputedName.
	homes map[string][]Member
	// fromData are the fields whose names, or whose being there, an evaluation decides.
	fromData map[*ast.Field]bool
	// order is the author's order of the components.
	order []string
	// conditionals are what comprehensions add to the components, and
	// conditionalParts which parts those within a component add to it.
	guarded          []Member
	conditionals     []Conditional
	conditionalParts map[string][]string
	// opaque says that components, or parts of one, come from an embedding, so that
	// bodies and names may not have all of them; foreign that another package brings
	// fields of the root.
	opaque, foreign bool
	// embeddings are where the components are embedded of which this is all that the
	// text shows.
	embeddings []span
	// rootGuards are the comprehensions at the root, whatever they add.
	rootGuards []Conditional
	// hooks are what comprehensions add to the hooks of each phase, and hooksEmbed says
	// that there may be more phases than the text shows.
	hooks      map[string]*[hookPlaces]Additions
	hooksEmbed bool
	// names are the members that are written for components and their parts.
	names map[string]members
	// paths are the struct literals at or below components, and those at the root, by
	// their path.
	paths map[*ast.StructLit][]string
	// edges are the derived edges of each component, and otherEdges those of
	// components whose names only an evaluation knows.
	edges      map[string][]DerivedEdge
	otherEdges []DerivedEdge
	// references are all references of the package, by position.
	references []Reference
	// selections are the places at which names of them are selected.
	selections map[fault.Origin][]Selection
	// needed are the references to fields of the spec, and clauses the clauses of
	// comprehensions, with whether they rest on more than the custom resource.
	needed  map[string]bool
	clauses map[ast.Clause]bool
	// readBy are the components that refer to each input.
	readBy map[string][]string
	// labelled are the hidden fields and definitions, by label, wherever they are.
	labelled map[string][]Member
	// secretSpec are the fields of the custom resource that Secrets are made of, and
	// secretContent what is written for their content, as far as the text shows Secrets.
	secretSpec    [][]string
	secretContent []Member
	files         []*ast.File
}

// members are the literal names written below a path. They are open when more may
// come from an embedding or a dynamic name.
type members struct {
	names map[string]fault.Position
	open  bool
}

// emptyIndex returns an index of no text.
func emptyIndex() *Index {
	return &Index{
		fields:           map[string][]Member{},
		conditionalParts: map[string][]string{},
		bodies:           map[string][]Member{},
		homes:            map[string][]Member{},
		needed:           map[string]bool{},
		readBy:           map[string][]string{},
		clauses:          map[ast.Clause]bool{},
		hooks:            map[string]*[hookPlaces]Additions{},
		names:            map[string]members{},
		paths:            map[*ast.StructLit][]string{},
		edges:            map[string][]DerivedEdge{},
		labelled:         map[string][]Member{},
		selections:       map[fault.Origin][]Selection{},
	}
}

// Read returns what the text of a package says.
func Read(files []*ast.File) *Index {
	x := emptyIndex()
	x.files = files
	var embeddings []Member
	for _, f := range files {
		if x.root.IsZero() {
			x.root = fault.Position{File: f.Filename, Line: 1}
		}
		for _, d := range f.Decls {
			if c, ok := d.(*ast.Comprehension); ok {
				x.addPaths(c.Value, nil)
			}
		}
		eachDecl(f.Decls, nil, func(m Member) {
			if m.kind == embedded {
				embeddings = append(embeddings, m)
				return
			}
			x.addRoot(m, 0)
		})
	}
	for _, m := range embeddings {
		x.addRoot(m, 0) // the name of another field, which had to be known first
	}
	x.addRootGuards()
	for _, m := range x.fields["components"] {
		x.addComponents(m)
	}
	x.addTwoLevels("inputs")
	x.addTwoLevels("versions")
	for _, m := range x.fields["hooks"] {
		x.addHooks(m)
	}
	for _, m := range x.guarded {
		x.conditionals = append(x.conditionals, x.conditionalOf(m))
	}
	x.guarded = nil
	for name := range x.bodies {
		x.edges[name] = x.derive(name, slices.Concat(x.bodies[name], x.anyBody))
	}
	x.deriveOthers()
	x.references = x.allReferences(files)
	x.fromData = fieldsFromData(files)
	x.addSecrets(files)
	return x
}

// fieldsFromData returns the fields in comprehensions, those with computed names, and
// what is in them.
func fieldsFromData(files []*ast.File) map[*ast.Field]bool {
	out := map[*ast.Field]bool{}
	decides := func(n ast.Node) bool {
		f, isField := n.(*ast.Field)
		_, comprehends := n.(*ast.Comprehension)
		return comprehends || isField && kindOf(f) == dynamic
	}
	for _, file := range files {
		depth := 0
		ast.Walk(file, func(n ast.Node) bool {
			if decides(n) {
				depth++
			}
			if f, ok := n.(*ast.Field); ok && depth > 0 {
				out[f] = true
			}
			return true
		}, func(n ast.Node) {
			if decides(n) {
				depth--
			}
		})
	}
	return out
}

// ContractPath is the import path of the contract.
const ContractPath = "operetta.dev/schemas/operator"

// ComputedName stands for the names of components that are not written out. It is
// no valid name.
const ComputedName = "*"

// addComponents records what is written below components.
func (x *Index) addComponents(components Member) {
	x.addMembers("components", components)
	eachMember(components.value, components.guards, func(m Member) { x.addComponent(m, 0) })
	x.addPaths(components.value, []string{"components"})
}

// addComponent records what is written for a component, or for several.
func (x *Index) addComponent(m Member, depth int) {
	if m.name != "" && !isRegular(m.name) {
		return
	}
	if len(m.guards) > 0 || m.kind == dynamic {
		x.guarded = append(x.guarded, m)
	}
	switch m.kind {
	case pattern:
		x.anyBody = append(x.anyBody, m)
		x.addParts(ComputedName, m)
	case dynamic:
		x.dynamicBody = append(x.dynamicBody, m)
		x.homes[ComputedName] = append(x.homes[ComputedName], m)
		x.addParts(ComputedName, m)
	case named:
		if !slices.Contains(x.order, m.name) && m.field.Constraint == token.ILLEGAL {
			x.order = append(x.order, m.name)
		}
		x.bodies[m.name] = append(x.bodies[m.name], m)
		x.homes[m.name] = append(x.homes[m.name], m)
		x.addMembers("components."+m.name, m)
		x.addParts(m.name, m)
	case embedded:
		x.opaque = true
		shown := x.standsFor(m.value, depth)
		for _, at := range shown {
			x.addPaths(at.value, []string{"components"})
		}
		if len(shown) == 0 && m.value != nil {
			x.embeddings = append(x.embeddings, spanOf(m.value))
		}
		for _, d := range x.behind(m, depth) {
			x.addComponent(d, depth+1)
		}
	}
}

// addTwoLevels records the names below a root field, and below each of those.
func (x *Index) addTwoLevels(root string) {
	for _, m := range x.fields[root] {
		x.addMembers(root, m)
		eachMember(m.value, nil, func(below Member) {
			if below.name != "" {
				x.addMembers(root+"."+below.name, below)
			}
		})
	}
}

// addRootGuards records the comprehensions at the root.
func (x *Index) addRootGuards() {
	for _, name := range slices.Sorted(maps.Keys(x.fields)) {
		for _, m := range x.fields[name] {
			if len(m.guards) > 0 {
				x.rootGuards = append(x.rootGuards, Conditional{guards: spansOf(m.guards)})
			}
		}
	}
}

// addParts records what is written below the parts of a component.
func (x *Index) addParts(component string, m Member) {
	eachMember(m.value, nil, func(part Member) {
		if part.name != "" {
			x.addMembers("components."+component+"."+part.name, part)
		}
		if len(part.guards) > 0 {
			x.conditionalParts[component] = append(x.conditionalParts[component], part.name)
		}
	})
}

// addMembers records the names written directly below a path.
func (x *Index) addMembers(path string, owner Member) {
	m, ok := x.names[path]
	if !ok {
		m.names = map[string]fault.Position{}
	}
	eachMember(owner.value, owner.guards, func(d Member) {
		switch {
		case d.name != "" && isRegular(d.name):
			if _, seen := m.names[d.name]; !seen {
				m.names[d.name] = fault.At(d.field.Label.Pos())
			}
		case d.kind == dynamic || d.kind == embedded:
			m.open = true
		}
	})
	x.names[path] = m
}

// addPaths records the paths of the struct literals in a value, so that a name
// that is resolved to one of them, such as a sibling's, has a path as well.
func (x *Index) addPaths(v ast.Node, path []string) {
	switch v := v.(type) {
	case *ast.StructLit:
		x.paths[v] = path
		for _, e := range v.Elts {
			switch e := e.(type) {
			case *ast.Field:
				if name, ok := literalLabel(e.Label); ok {
					x.addPaths(e.Value, append(slices.Clone(path), name))
				}
			case *ast.Comprehension:
				x.addPaths(e.Value, path)
			case *ast.EmbedDecl:
				x.addPaths(e.Expr, path)
			}
		}
	case *ast.BinaryExpr:
		x.addPaths(v.X, path)
		x.addPaths(v.Y, path)
	case *ast.ParenExpr:
		x.addPaths(v.X, path)
	case *ast.UnaryExpr:
		x.addPaths(v.X, path)
	case *ast.Alias:
		x.addPaths(v.Expr, path)
	}
}

// Rank returns the place of a component in the text; components that only an
// evaluation knows come last.
func (x *Index) Rank(component string) int {
	if i := slices.Index(x.order, component); i >= 0 {
		return i
	}
	return len(x.order)
}

// MayHave reports whether a component may have a part, or a part a member: false
// saves looking it up, which costs more than evaluating one.
func (x *Index) MayHave(member string, path ...string) bool {
	m, ok := x.names[strings.Join(append([]string{"components"}, path...), ".")]
	if !ok || m.open || x.opaque || len(x.anyBody)+len(x.dynamicBody) > 0 {
		return true
	}
	_, written := m.names[member]
	return written
}

// PositionOf returns where a member below a path is written, such as components, web,
// objects, service. It is zero for what only an evaluation knows.
func (x *Index) PositionOf(path ...string) fault.Position {
	last := len(path) - 1
	if last > 0 {
		return x.names[strings.Join(path[:last], ".")].names[path[last]]
	}
	for _, m := range x.fields[path[0]] {
		return m.Position()
	}
	return fault.Position{}
}

// Names returns the names that are written below a path, such as components or
// components.web.outputs, and whether there may be more that only an evaluation knows.
func (x *Index) Names(path ...string) (names []string, open bool) {
	m, ok := x.names[strings.Join(path, ".")]
	if !ok {
		return nil, true
	}
	return slices.Sorted(maps.Keys(m.names)), m.open || x.opaque
}

// Root returns where the package begins.
func (x *Index) Root() fault.Position { return x.root }

// Fields returns what is written at the root, by name.
func (x *Index) Fields() []Member {
	var out []Member
	for _, name := range slices.Sorted(maps.Keys(x.fields)) {
		out = append(out, x.fields[name]...)
	}
	return out
}

// Components returns the literal names of the components, in the author's order.
func (x *Index) Components() []string { return x.order }

// Foreign reports whether another package brings fields of the root, which may be any.
func (x *Index) Foreign() bool { return x.foreign }

// Declared returns the paths of all that is written below a root field: the literal names
// up to the first that is none.
func (x *Index) Declared(root string) [][]string {
	var out [][]string
	var declare func(path []string, m Member)
	declare = func(path []string, m Member) {
		switch {
		case m.kind == embedded && m.value == nil: // three dots
			return
		case m.kind != named:
			out = append(out, path)
			return
		}
		path = append(slices.Clone(path), m.name)
		inner := m.Members()
		for _, d := range inner {
			declare(path, d)
		}
		if len(inner) == 0 {
			out = append(out, path)
		}
	}
	for _, m := range x.fields[root] {
		for _, d := range m.Members() {
			declare(nil, d)
		}
	}
	return out
}

// isRegular reports whether a name is neither hidden nor a definition.
func isRegular(name string) bool {
	return !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#")
}

// A memberKind says what a member is.
type memberKind int

const (
	named    memberKind = iota // a field with a literal name
	dynamic                    // a field whose name is computed
	pattern                    // a constraint on fields
	embedded                   // anything else: what it brings in is not written here
)

// A member is something that is declared directly in a value.
type Member struct {
	kind  memberKind
	name  string // of a named one
	field *ast.Field
	value ast.Expr
	// guards are the clauses of the comprehensions around it.
	guards []ast.Clause
}

// Name returns the literal name of a field, or "".
func (m Member) Name() string { return m.name }

// IsRegular reports whether it is a field whose name is literal and neither hidden nor a
// definition.
func (m Member) IsRegular() bool { return m.name != "" && isRegular(m.name) }

// Position returns where the label of a field is written, or else the value.
func (m Member) Position() fault.Position {
	switch {
	case m.field != nil:
		return fault.At(m.field.Label.Pos())
	case m.value != nil:
		return fault.At(m.value.Pos())
	}
	return fault.Position{}
}

// Members returns what is declared in the value of a member, without its guards.
func (m Member) Members() []Member {
	var out []Member
	eachMember(m.value, nil, func(d Member) { out = append(out, d) })
	return out
}

// eachMember calls f for each member of a value, also within comprehensions,
// unifications and disjunctions.
func eachMember(v ast.Node, guards []ast.Clause, f func(Member)) {
	switch v := v.(type) {
	case *ast.StructLit:
		eachDecl(v.Elts, guards, f)
	case *ast.BinaryExpr:
		if v.Op != token.AND && v.Op != token.OR {
			f(Member{kind: embedded, value: v, guards: guards})
			return
		}
		eachMember(v.X, guards, f)
		eachMember(v.Y, guards, f)
	case *ast.UnaryExpr:
		eachMember(v.X, guards, f)
	case *ast.ParenExpr:
		eachMember(v.X, guards, f)
	case *ast.Alias:
		eachMember(v.Expr, guards, f)
	case ast.Expr:
		f(Member{kind: embedded, value: v, guards: guards})
	}
}

// eachDecl calls f for each member that declarations make.
func eachDecl(decls []ast.Decl, guards []ast.Clause, f func(Member)) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			name, _ := literalLabel(d.Label)
			f(Member{kind: kindOf(d), name: name, field: d, value: d.Value, guards: guards})
		case *ast.Comprehension:
			eachMember(d.Value, slices.Concat(guards, d.Clauses), f)
		case *ast.EmbedDecl:
			eachMember(d.Expr, guards, f)
		case *ast.Ellipsis:
			f(Member{kind: embedded, value: d.Type, guards: guards})
		}
	}
}

// kindOf says what a field is as a member.
func kindOf(f *ast.Field) memberKind {
	if _, ok := literalLabel(f.Label); ok {
		return named
	}
	if _, ok := unaliased(f.Label).(*ast.ListLit); ok {
		return pattern
	}
	return dynamic
}

// literalLabel returns the name of a label that is written out.
func literalLabel(l ast.Node) (string, bool) {
	switch l := unaliased(l).(type) {
	case *ast.Ident:
		return l.Name, true
	case *ast.BasicLit:
		if l.Kind == token.STRING {
			s, err := literal.Unquote(l.Value)
			return s, err == nil
		}
	}
	return "", false
}

// unaliased returns a label or value without the alias in front of it.
func unaliased(n ast.Node) ast.Node {
	if a, ok := n.(*ast.Alias); ok {
		return a.Expr
	}
	return n
}
