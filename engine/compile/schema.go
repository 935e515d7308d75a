package compile

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"
)

// A schema may have constraints that depend on values: in conditions, by other fields, in assertions. With a
// hole there CUE often takes a default, or what the hole is unified with, for the value, and does not tell. So
// whatever the text of a schema reads has a value, and only what is constrained by itself is a hole.

// reads are the values of a resource that its schema reads. It goes by names: a value that is not read
// but has the same name somewhere else counts as well.
type reads struct {
	// chains are the names of fields that follow each other, such as web, replicas.
	chains [][]string
	// live are paths of live objects and inputs.
	live [][]string
	// all is true if it may be any of them.
	all bool
}

// readsOf returns what the schema of the resource of a package reads.
func readsOf(inst *build.Instance) reads {
	r := &schemaReader{
		declared: map[*build.Instance]map[string][]declaration{}, seen: map[visited]bool{}, aliases: map[string]bool{},
		given: map[string][]passage{}, followed: map[string]bool{}, looked: map[variable]bool{}, scalars: map[*ast.BinaryExpr]bool{},
	}
	in := scope{inst: inst, decides: true, schema: true}
	r.reach(in, "cr")
	r.reach(in, "versions")
	r.embedded(inst)
	in = scope{inst: inst, label: noLabel}
	for _, name := range []string{"components", "hooks", "status", "inputs", "config", "requeueAfter"} {
		r.reach(in, name)
	}
	r.follow()
	for _, chain := range r.out.chains {
		if r.aliases[chain[0]] {
			r.read(chain[1:])
		}
	}
	return r.out
}

// has reports whether the value at a path of a view is read.
func (r reads) has(path []string) bool {
	if path[0] != "cr" {
		return slices.ContainsFunc(r.live, func(chain []string) bool { return contains(path, chain) })
	}
	return r.all || slices.ContainsFunc(r.chains, func(chain []string) bool { return contains(path[1:], chain) })
}

// contains reports whether some names follow each other in a path.
func contains(path, chain []string) bool {
	for i := range path {
		if len(path)-i >= len(chain) && slices.Equal(path[i:i+len(chain)], chain) {
			return true
		}
	}
	return false
}

// A schemaReader looks at everything that a schema consists of.
type schemaReader struct {
	out reads
	// declared is what the names at the root of a package stand for.
	declared map[*build.Instance]map[string][]declaration
	seen     map[visited]bool
	// aliases are other names of structs and fields.
	aliases map[string]bool
	// given are the values of fields by their labels, and of lets by their names: what is read by a name may be given by it.
	given map[string][]passage
	// byName are the names that a package reads besides its schema, and followed those whose values were looked at.
	byName   [][]string
	followed map[string]bool
	looked   map[variable]bool
	// scalars are expressions that isScalar knows to be scalars.
	scalars map[*ast.BinaryExpr]bool
}

// A passage is an expression and where it is.
type passage struct {
	in   scope
	node ast.Node
}

// A declaration is a part of what a name stands for, and the file that it is in.
type declaration struct {
	file *ast.File
	node ast.Node
}

// A visited is a name of a package, as what constrains the field with a label.
type visited struct {
	inst        *build.Instance
	name, label string
	decides     bool
	schema      bool
}

// A scope is where a schemaReader is: in a file, below the field with a label.
type scope struct {
	inst  *build.Instance
	file  *ast.File
	label string
	// decides is true if all that is referred to counts as read: in a schema, and in what decides about the
	// form of an object.
	decides bool
	schema  bool
}

// noLabel is the label where no field of a resource is constrained.
const noLabel = "_"

// declarationsOf returns what a name at the root of a package stands for.
func (r *schemaReader) declarationsOf(inst *build.Instance, name string) []declaration {
	if r.declared[inst] == nil {
		r.declared[inst] = map[string][]declaration{}
		for _, f := range inst.Files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.Field:
					if name, _, err := ast.LabelName(d.Label); err == nil {
						r.declared[inst][name] = append(r.declared[inst][name], declaration{f, d.Value})
					}
				case *ast.LetClause:
					r.declared[inst][d.Ident.Name] = append(r.declared[inst][d.Ident.Name], declaration{f, d.Expr})
				}
			}
		}
	}
	return r.declared[inst][name]
}

// reach looks at what a name stands for where it constrains the field with a label.
func (r *schemaReader) reach(in scope, name string) {
	at := visited{in.inst, name, in.label, in.decides, in.schema}
	if r.seen[at] {
		return
	}
	r.seen[at] = true
	for _, d := range r.declarationsOf(in.inst, name) {
		in.file = d.file
		r.walk(in, d.node)
	}
}

// embedded looks for schemas in what is embedded at the root, besides the contract.
func (r *schemaReader) embedded(inst *build.Instance) {
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.EmbedDecl:
				if s, ok := d.Expr.(*ast.SelectorExpr); !ok || !isContract(f, s) {
					r.out.all = true
				}
			case *ast.Comprehension, *ast.Alias:
				r.out.all = true
			}
		}
	}
}

// isContract reports whether an expression is the contract, which constrains no values of a resource.
func isContract(f *ast.File, s *ast.SelectorExpr) bool {
	id, ok := s.X.(*ast.Ident)
	return ok && strings.HasPrefix(importOf(f, id.Name), "operetta.dev/schemas/operator")
}

// importOf returns the path of the package that a file imports by a name, or "".
func importOf(f *ast.File, name string) string {
	for spec := range f.ImportSpecs() {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		is := path[strings.LastIndexAny(path, "/:")+1:]
		if spec.Name != nil {
			is = spec.Name.Name
		}
		if is == name {
			return path
		}
	}
	return ""
}

// isBuiltin reports whether an import path is one of CUE's own packages.
func isBuiltin(path string) bool { return path != "" && !strings.Contains(path, ".") }

// read notes that names are read.
func (r *schemaReader) read(chain []string) {
	if len(chain) == 0 || chain[0] == "" {
		r.out.all = true
		return
	}
	if !slices.ContainsFunc(r.out.chains, func(c []string) bool { return slices.Equal(c, chain) }) {
		r.out.chains = append(r.out.chains, chain)
	}
}

// walk looks at a node and all within it.
func (r *schemaReader) walk(in scope, n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			r.field(in, n)
			return false
		case *ast.Alias:
			r.aliases[n.Ident.Name] = true
			r.walk(in, n.Expr)
			return false
		case *ast.LetClause:
			r.given[n.Ident.Name] = append(r.given[n.Ident.Name], passage{in, n.Expr})
			r.walk(in, n.Expr)
			return false
		case *ast.ForClause:
			r.walk(in, n.Source)
			return false
		case *ast.IfClause:
			r.walk(in.deciding(), n.Condition)
			return false
		case *ast.IndexExpr:
			r.walk(in, n.X)
			r.walk(in.deciding(), n.Index)
			return false
		case *ast.Ident:
			r.reference(in, n, nil)
			return false
		case *ast.SelectorExpr:
			r.selection(in, n)
			return false
		case *ast.BinaryExpr:
			return r.binary(in, n)
		case *ast.CallExpr:
			return r.called(in, n)
		case *ast.Func, *ast.TryClause, *ast.FallbackClause, *ast.BadExpr, *ast.BadDecl:
			r.out.all = true
		}
		return true
	}, nil)
}

// binary looks at an operator, and reports whether to look at its operands.
func (r *schemaReader) binary(in scope, n *ast.BinaryExpr) bool {
	switch {
	case !in.decides:
		return r.operator(in, n)
	case !in.schema && isPresence(n):
		return n.Op == token.OR
	case n.Op == token.OR && (!r.isScalar(in, n.X, 0) || !r.isScalar(in, n.Y, 0)):
		r.alternatives(in, n) // values decide which of several it is
	}
	return true
}

// called looks at a call, and reports whether to look at its arguments.
func (r *schemaReader) called(in scope, n *ast.CallExpr) bool {
	switch {
	case !in.decides:
		return r.call(in, n)
	case !in.schema && calledName(in.file, n.Fun) == "len":
		for _, arg := range n.Args {
			r.walk(in.counting(), arg) // how many there are is part of the shape
		}
		return false
	case !checksScalars(in.file, n.Fun):
		r.read([]string{in.label})
	}
	return true
}

// field looks at a field. Its own name is none that is read.
func (r *schemaReader) field(in scope, f *ast.Field) {
	label := f.Label
	if f.Alias != nil {
		r.out.all = true
	}
	if a, ok := label.(*ast.Alias); ok {
		r.aliases[a.Ident.Name] = true
		label, _ = a.Expr.(ast.Label)
	}
	name, _, err := ast.LabelName(label)
	list, isPattern := label.(*ast.ListLit)
	switch {
	case isPattern:
		for _, e := range list.Elts {
			if a, ok := e.(*ast.Alias); ok {
				e = a.Expr // what it names is part of the form
			}
			r.walk(in, e)
		}
	case err != nil && label != nil:
		r.walk(in.deciding(), label)
	case !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#"):
		in.label = name
	}
	if f.Value == nil {
		return
	}
	if err == nil {
		r.given[name] = append(r.given[name], passage{in, f.Value})
	}
	r.walk(in, f.Value)
}

// selection looks at a reference with names that are selected of it.
func (r *schemaReader) selection(in scope, e ast.Expr) {
	var names []string
	for {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			break
		}
		name, _, err := ast.LabelName(s.Sel)
		if err != nil {
			name = ""
		}
		names = append([]string{name}, names...)
		e = s.X
	}
	if id, ok := e.(*ast.Ident); ok {
		r.reference(in, id, names)
		return
	}
	r.walk(in, e)
}

// reference looks at what a name refers to, with what is selected of it.
func (r *schemaReader) reference(in scope, id *ast.Ident, names []string) {
	if clause, ok := id.Scope.(*ast.ForClause); ok && !in.schema {
		if in.decides && (clause.Key == nil || clause.Key.Name != id.Name) { // keys are part of the shape
			r.variable(append([]string{id.Name}, names...), passage{in, clause.Source})
		}
		return
	}
	declared := r.declarationsOf(in.inst, id.Name)
	path := importOf(in.file, id.Name)
	switch {
	case filledByEngine[id.Name] && !in.decides:
		return
	case !in.schema && assembled[id.Name]:
		if in.decides && len(names) > 0 {
			r.byName = append(r.byName, names[len(names)-1:])
		}
		return
	case id.Name == "cr":
		r.read(names)
	case id.Name == "live" || id.Name == "inputs":
		r.out.live = append(r.out.live, append([]string{id.Name}, names...))
	case path != "":
		if !isBuiltin(path) {
			r.imported(in, path, names)
		}
	case len(declared) > 0:
		r.reach(in, id.Name)
	case predeclared(id.Name):
		return
	}
	if path == "" && id.Name != "cr" && in.decides {
		chain := append([]string{id.Name}, names...) // what is nearer may have the same name
		r.read(chain)
		if !in.schema {
			r.byName = append(r.byName, chain)
		}
	}
}

// imported looks at a definition of another package.
func (r *schemaReader) imported(in scope, path string, names []string) {
	for _, inst := range in.inst.Imports {
		if inst.ImportPath == path && len(names) > 0 && len(r.declarationsOf(inst, names[0])) > 0 {
			in.inst = inst
			r.reach(in, names[0])
			return
		}
	}
	if in.decides {
		r.read([]string{in.label})
	}
}

// predeclared reports whether a name is one of CUE's own.
func predeclared(name string) bool {
	if scalarTypes[name] || name == "_" || name == "__int" {
		return true
	}
	return slices.Contains([]string{"len", "close", "and", "or", "div", "mod", "quo", "rem", "matchN", "matchIf", "error"}, name)
}

// scalarTypes are the names of types and values that are scalars.
var scalarTypes = map[string]bool{
	"string": true, "int": true, "number": true, "bool": true, "bytes": true, "float": true, "null": true, "true": true, "false": true,
	"uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true, "uint128": true, "int8": true, "int16": true, "int32": true,
	"int64": true, "int128": true, "float32": true, "float64": true, "rune": true,
}

// checksScalars reports whether a function is about scalars, or only asks how many fields or elements there are.
func checksScalars(f *ast.File, fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"len", "close", "div", "mod", "quo", "rem"}, fun.Name)
	case *ast.SelectorExpr:
		id, ok := fun.X.(*ast.Ident)
		name, _, err := ast.LabelName(fun.Sel)
		if !ok || err != nil {
			return false
		}
		switch path := importOf(f, id.Name); path {
		case "strings", "net", "time", "math", "regexp", "strconv", "crypto/sha256", "encoding/base64", "encoding/hex":
			return true
		case "list", "struct":
			return slices.Contains(counting, path+"."+name)
		}
	}
	return false
}

// maxChain bounds how many names may stand for each other.
const maxChain = 20

// isScalar reports whether an operand of a disjunction is none of several structs or lists.
func (r *schemaReader) isScalar(in scope, e ast.Expr, depth int) bool {
	if depth > maxChain {
		return false
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.isScalar(in, e.X, depth+1)
	case *ast.UnaryExpr:
		return e.Op != token.MUL || r.isScalar(in, e.X, depth+1)
	case *ast.BasicLit, *ast.Interpolation, *ast.BottomLit, *ast.CallExpr:
		return true
	case *ast.BinaryExpr:
		// The values of an enumeration are as deep as there are many, and no names that stand for each other.
		if !r.scalars[e] && (e.Op == token.AND || e.Op == token.OR) && (!r.isScalar(in, e.X, depth) || !r.isScalar(in, e.Y, depth)) {
			return false
		}
		r.scalars[e] = true // so that each part of a long one is looked at once
		return true
	case *ast.Ident:
		if declared := r.declarationsOf(in.inst, e.Name); len(declared) > 0 {
			return r.areScalars(in, declared, depth)
		}
		return e.Name != "_" // another field is read, and has a value
	case *ast.SelectorExpr:
		return r.selectsScalar(in, e, depth)
	}
	return false
}

// areScalars is isScalar for what a name stands for.
func (r *schemaReader) areScalars(in scope, all []declaration, depth int) bool {
	for _, d := range all {
		e, ok := d.node.(ast.Expr)
		in.file = d.file
		if !ok || !r.isScalar(in, e, depth+1) {
			return false
		}
	}
	return len(all) > 0
}

// selectsScalar is isScalar for a selection.
func (r *schemaReader) selectsScalar(in scope, e *ast.SelectorExpr, depth int) bool {
	if root := rootOf(e); root != nil && filledByEngine[root.Name] {
		return true
	}
	id, ok := e.X.(*ast.Ident)
	name, _, err := ast.LabelName(e.Sel)
	if !ok || err != nil {
		return false
	}
	path := importOf(in.file, id.Name)
	for _, inst := range in.inst.Imports {
		if inst.ImportPath == path {
			in.inst = inst
			return r.areScalars(in, r.declarationsOf(inst, name), depth)
		}
	}
	return isBuiltin(path) || len(r.declarationsOf(in.inst, id.Name)) == 0
}
