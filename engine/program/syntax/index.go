package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// An Index is what the text of a package shows before any evaluation. It is immutable once
// it is read, and safe for concurrent use.
type Index struct {
	names
	Comprehensions
	ComputedNames

	root fault.Position
	// bodies holds the members of each component that has a literal name.
	bodies map[string][]Member
	// anyBody holds the members of components by pattern, and dynamicBody those of
	// components with computed names.
	anyBody, dynamicBody []Member
	// fromData are the fields whose name or existence an evaluation decides.
	fromData map[*ast.Field]bool
	// order is the author's order of the components.
	order []string
	// opaque is true if components, or parts of one, come from an embedding, so that
	// bodies and names may be incomplete. foreign is true if another package adds fields
	// at the root.
	opaque, foreign bool
	// edges are the derived edges of each component, and otherEdges those of
	// components whose names only an evaluation knows.
	edges      map[string][]DerivedEdge
	otherEdges []DerivedEdge
	// references are all references of the package, by position.
	references []Reference
	// readings are what the references read, and declarations what the types look at that are declared
	// for the data fields.
	readings     []Reading
	declarations map[string][]Reading
	// parts are the parts whose values rest on less than all that.
	parts Parts
	// selections are the places at which names of them are selected.
	selections map[fault.TokenPosition][]Selection
	// needed are the references to fields of the spec, and whether a component always
	// evaluates them, whatever the live objects and inputs are.
	needed map[string]bool
	// readBy are the components that refer to each input.
	readBy map[string][]string
	// secretSpec are the fields of the custom resource that Secrets are rendered from, and
	// secretContent are the members of their content, as far as the text shows Secrets.
	secretSpec    [][]string
	secretContent []Member
	files         []*ast.File
	// imports leads to what is imported. It is nil once the index is read.
	imports *imports
}

// names are what the names in the text of a package lead to.
type names struct {
	// fields holds the declarations of each root field, over all files.
	fields map[string][]Member
	// definitions holds the members for each component and hook. Those with computed names are
	// under ComputedName.
	definitions map[string][]Member
	// paths are the struct literals at or below components, and those at the root, by
	// their path.
	paths map[*ast.StructLit][]string
	// labelled are the hidden fields and definitions, by label: a template is given its
	// parameters by fields of the same label, wherever those are.
	labelled map[string][]Member
	// used are the names of hidden fields and definitions that something refers to.
	used map[string]bool
}

// A reader fills an index.
type reader struct {
	*Index

	// guarded are the components in comprehensions, which are looked at last.
	guarded []Member
	// clauses are those of comprehensions, with whether they rest on more than the custom
	// resource.
	clauses map[ast.Clause]bool
}

// ReadInstance returns the index of the text of a package, and looks at definitions that it imports.
func ReadInstance(inst *build.Instance) *Index {
	x := newReader(inst.Files)
	x.imports = &imports{instance: inst, read: map[*build.Instance]*Index{}}
	x.readFields()
	x.foreign = x.foreign || usesSelf(x.files) || x.aliasesData()
	x.addRootGuards()
	for _, m := range x.fields["components"] {
		x.addComponents(m)
	}
	for _, m := range x.fields["hooks"] {
		x.addHooks(m)
	}
	for _, m := range x.guarded {
		x.conditionals = append(x.conditionals, x.conditionalOf(m))
	}
	for name := range x.bodies {
		x.edges[name] = x.derive(name, slices.Concat(x.bodies[name], x.anyBody))
	}
	x.deriveOthers()
	x.references = x.allReferences()
	x.addDeclarations()
	x.fromData = fieldsFromData(x.files)
	x.addSecrets()
	x.imports = nil
	return x.Index
}

func newReader(files []*ast.File) *reader {
	return &reader{clauses: map[ast.Clause]bool{}, Index: &Index{
		names: names{
			fields:      map[string][]Member{},
			definitions: map[string][]Member{},
			paths:       map[*ast.StructLit][]string{},
			labelled:    map[string][]Member{},
			used:        usedHidden(files),
		},
		ComputedNames: ComputedNames{selected: map[fault.TokenPosition]bool{}},
		Comprehensions: Comprehensions{
			conditionalParts: map[string][]string{},
			hooks:            map[string]*[hookPlaces]Additions{},
		},
		files:        files,
		bodies:       map[string][]Member{},
		needed:       map[string]bool{},
		readBy:       map[string][]string{},
		edges:        map[string][]DerivedEdge{},
		selections:   map[fault.TokenPosition][]Selection{},
		declarations: map[string][]Reading{},
	}}
}

// readFields records the declarations at the root.
func (x *reader) readFields() {
	var embeddings []Member
	for _, f := range x.files {
		if x.root.IsZero() {
			x.root = fault.Position{File: f.Filename, Line: 1}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.Comprehension:
				x.addPaths(d.Value, nil)
			case *ast.EmbedDecl:
				x.addPaths(d.Expr, nil)
			}
		}
		eachDecl(f.Decls, nil, func(m Member) {
			if m.kind == embedded {
				embeddings = append(embeddings, m)
				return
			}
			if slices.Contains(dataFields, m.name) {
				x.addPaths(m.value, []string{m.name}) // they may refer to their own fields
			}
			x.addRoot(m, 0)
		})
	}
	for _, m := range embeddings {
		x.addRoot(m, 0) // the name of another field, which had to be known first
	}
}

// dataFields are the fields of the root that the engine fills.
var dataFields = []string{"cr", "live", "inputs"}

// aliasesData reports whether a value that the engine fills has an alias, by which the package may refer to any
// field of it.
func (x *reader) aliasesData() bool {
	for _, name := range dataFields {
		for _, m := range x.fields[name] {
			for n := range NodesIn(m.value) {
				if _, aliased := n.(*ast.Alias); aliased {
					return true
				}
			}
		}
	}
	return false
}

// usesSelf reports whether files refer to the value around a field by self, which is an experiment of CUE.
func usesSelf(files []*ast.File) bool {
	names := map[ast.Node]bool{} // of fields
	for n := range NodesIn(files...) {
		switch n := n.(type) {
		case *ast.Field:
			names[n.Label] = true
		case *ast.SelectorExpr:
			names[n.Sel] = true
		case *ast.Ident:
			if n.Name == "self" && n.Node == nil && !names[n] {
				return true
			}
		}
	}
	return false
}

// fieldsFromData returns the fields in comprehensions, the fields with computed names, and
// the fields in either.
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

// ComputedName stands for the names of components that only an evaluation knows. No
// component can have it.
const ComputedName = "*"

// addComponents records the members of components.
func (x *reader) addComponents(components Member) {
	eachMember(components.value, components.guards, func(m Member) { x.addComponent(m, 0) })
	x.addPaths(components.value, []string{"components"})
}

// addComponent records the members of a component, or of several.
func (x *reader) addComponent(m Member, depth int) {
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
		x.definitions[ComputedName] = append(x.definitions[ComputedName], m)
		x.addParts(ComputedName, m)
	case named:
		if !slices.Contains(x.order, m.name) && m.field.Constraint == token.ILLEGAL {
			x.order = append(x.order, m.name)
		}
		x.bodies[m.name] = append(x.bodies[m.name], m)
		x.definitions[m.name] = append(x.definitions[m.name], m)
		x.addParts(m.name, m)
	case embedded:
		x.opaque = true
		shown := x.possibleMembers(m.value, depth)
		for _, at := range shown {
			x.addPaths(at.value, []string{"components"})
		}
		if len(shown) == 0 && m.value != nil {
			x.embeddings = append(x.embeddings, spanOf(m.value))
		}
		for _, d := range x.embeddedMembers(m, depth) {
			x.addComponent(d, depth+1)
		}
	}
}

// addRootGuards records the comprehensions at the root.
func (x *reader) addRootGuards() {
	for _, name := range slices.Sorted(maps.Keys(x.fields)) {
		for _, m := range x.fields[name] {
			if len(m.guards) > 0 {
				x.rootGuards = append(x.rootGuards, Conditional{guards: spansOf(m.guards)})
			}
		}
	}
}

// addParts records which parts of a component are in comprehensions.
func (x *reader) addParts(component string, m Member) {
	for _, part := range m.Members() {
		if len(part.guards) > 0 {
			x.conditionalParts[component] = append(x.conditionalParts[component], part.name)
		}
	}
}

// addPaths records the paths of the struct literals in a value, so that a name
// that is resolved to one of them, such as a sibling's, has a path as well.
func (x *reader) addPaths(v ast.Node, path []string) {
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

// MayHave reports whether a component may have a part, or a part may have a member. Call it before
// a lookup in CUE: a lookup that finds nothing costs more than an evaluation of a value that it
// finds.
func (x *Index) MayHave(member string, path ...string) bool {
	at := x.at(append([]string{"components"}, path...))
	may := len(at) == 0 || x.opaque || len(x.anyBody)+len(x.dynamicBody) > 0
	for _, m := range at {
		eachMember(m.value, nil, func(d Member) {
			may = may || d.name == member || d.kind == dynamic || d.kind == embedded
		})
	}
	return may
}

// at returns the members at a path, such as components, web, objects.
func (x *names) at(path []string) []Member {
	within := x.fields[path[0]]
	if len(path) > 1 && path[0] == "components" {
		within, path = x.definitions[path[1]], path[1:]
	}
	for _, name := range path[1:] {
		within = membersNamed(within, name)
	}
	return within
}

// PositionOf returns where a member at a path is written, such as components, web,
// objects, service. It is zero for what only an evaluation knows.
func (x *names) PositionOf(path ...string) fault.Position {
	for _, m := range x.at(path) {
		return m.Position()
	}
	return fault.Position{}
}

// NearestPosition returns where a member at a path is written, or what is around it.
func (x *names) NearestPosition(path ...string) fault.Position {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if at := x.PositionOf(path...); !at.IsZero() {
			return at
		}
	}
	return fault.Position{}
}

// Written returns how many times the text has a field, as far as it shows.
func (x *names) Written(path []string) int { return len(x.at(path)) }

// Names returns the names that are written below a path, such as components or
// components.web.outputs, and whether there may be more that only an evaluation knows.
func (x *Index) Names(path ...string) (names []string, open bool) {
	at := x.at(path)
	open = x.opaque || len(at) == 0
	for _, m := range at {
		for _, d := range m.Members() {
			open = open || d.kind == dynamic || d.kind == embedded
			if d.IsRegular() {
				names = append(names, d.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), open
}

// Root returns where the package begins.
func (x *Index) Root() fault.Position { return x.root }

// Fields returns the declarations at the root, by name.
func (x *names) Fields() []Member {
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
func (x *names) Declared(root string) [][]string {
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
			if d.kind != embedded || !isTop(d.value) {
				declare(nil, d)
			}
		}
	}
	return out
}

// isTop reports whether an expression is _, which declares nothing.
func isTop(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// isRegular reports whether a name is neither hidden nor a definition.
func isRegular(name string) bool {
	return !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#")
}
