package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// measures is how large a tree of Go files is.
type measures struct {
	lines, packages int
	// names are the exported names at the top of a file, and exportedMethods the exported methods of exported types.
	names, exportedMethods int
	// seams are the interfaces for reading and writing objects that something implements.
	seams []string
	// enumerations are the named types of texts or numbers with two constants or more.
	enumerations int
	// methods are how many methods the types have, by package and name.
	methods map[string]int
	// durations are the durations that are declared at the top of a file.
	durations int
}

// A row is one measure for people.
type row struct{ name, value string }

// largestTypes is how many types are listed by their methods.
const largestTypes = 5

func (m measures) rows() []row {
	var largest []string
	for _, name := range slices.SortedFunc(maps.Keys(m.methods), func(a, b string) int { return cmp.Or(m.methods[b]-m.methods[a], strings.Compare(a, b)) }) {
		if len(largest) < largestTypes {
			largest = append(largest, fmt.Sprintf("%s %d", name, m.methods[name]))
		}
	}
	return []row{
		{"lines that are no tests", strconv.Itoa(m.lines)},
		{"packages", strconv.Itoa(m.packages)},
		{"exported names", strconv.Itoa(m.names)},
		{"exported methods", strconv.Itoa(m.exportedMethods)},
		{"interfaces for reading or writing objects", fmt.Sprintf("%d: %s", len(m.seams), strings.Join(m.seams, ", "))},
		{"enumerations", strconv.Itoa(m.enumerations)},
		{"types with most methods", strings.Join(largest, ", ")},
		{"durations", strconv.Itoa(m.durations)},
	}
}

// A tree is what is collected of all files.
type tree struct {
	measures

	folders map[string]bool
	// interfaces are the interfaces by package and name.
	interfaces map[string]*ast.InterfaceType
	// methodNames are the methods of each type, and embeds the names of the types that it embeds.
	methodNames map[string]map[string]bool
	embeds      map[string][]string
	// kinds are the types that may be an enumeration, and constants how many each has.
	kinds     map[string]bool
	constants map[string]int
}

// measure measures files by their names.
func measure(files map[string]string) (measures, error) {
	t := tree{
		measures: measures{methods: map[string]int{}}, folders: map[string]bool{}, interfaces: map[string]*ast.InterfaceType{},
		methodNames: map[string]map[string]bool{}, embeds: map[string][]string{}, kinds: map[string]bool{}, constants: map[string]int{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		syntax, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return measures{}, err
		}
		if ast.IsGenerated(syntax) {
			continue
		}
		t.lines += strings.Count(files[name], "\n")
		t.folders[path.Dir(name)] = true
		for _, d := range syntax.Decls {
			t.declare(path.Base(path.Dir(name)), d)
		}
	}
	t.packages = len(t.folders)
	for name := range t.kinds {
		if t.constants[name] >= 2 {
			t.enumerations++
		}
	}
	t.findSeams()
	return t.measures, nil
}

// declare adds a declaration of a package.
func (t *tree) declare(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		t.function(pkg, d)
	case *ast.GenDecl:
		last := ""
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				t.typeOf(pkg, s)
			case *ast.ValueSpec:
				last = t.values(pkg, s, last, d.Tok)
			}
		}
	}
}

func (t *tree) function(pkg string, d *ast.FuncDecl) {
	exported := d.Name.IsExported()
	if d.Recv == nil {
		if exported {
			t.names++
		}
		return
	}
	of := nameOf(d.Recv.List[0].Type)
	full := pkg + "." + of
	t.methods[full]++
	if t.methodNames[full] == nil {
		t.methodNames[full] = map[string]bool{}
	}
	t.methodNames[full][d.Name.Name] = true
	if exported && ast.IsExported(of) {
		t.exportedMethods++
	}
}

func (t *tree) typeOf(pkg string, s *ast.TypeSpec) {
	if s.Name.IsExported() {
		t.names++
	}
	full := pkg + "." + s.Name.Name
	switch is := s.Type.(type) {
	case *ast.InterfaceType:
		t.interfaces[full] = is
	case *ast.StructType:
		for _, f := range is.Fields.List {
			if len(f.Names) == 0 {
				t.embeds[full] = append(t.embeds[full], qualified(pkg, f.Type))
			}
		}
	case *ast.Ident:
		if slices.Contains([]string{"string", "int", "int32", "int64", "uint8", "byte", "uint32"}, is.Name) {
			t.kinds[full] = true
		}
	}
}

// values adds constants and variables. It returns the type of the last constant, which those behind it have that name no value.
func (t *tree) values(pkg string, s *ast.ValueSpec, last string, tok token.Token) string {
	for _, name := range s.Names {
		if name.IsExported() {
			t.names++
		}
	}
	if isDuration(s) {
		t.durations += len(s.Names)
	}
	if tok != token.CONST {
		return ""
	}
	switch {
	case s.Type != nil:
		last = qualified(pkg, s.Type)
	case len(s.Values) > 0:
		last = ""
	}
	t.constants[last] += len(s.Names)
	return last
}

// isDuration reports whether a constant or variable is a duration, or is made of some.
func isDuration(s *ast.ValueSpec) bool {
	found := s.Type != nil && qualified("", s.Type) == "time.Duration"
	for _, v := range s.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				unit := slices.Contains([]string{"Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}, sel.Sel.Name)
				found = found || unit && qualified("", sel) == "time."+sel.Sel.Name
			}
			_, function := n.(*ast.FuncLit)
			return !function
		})
	}
	return found
}

// findSeams finds the interfaces with a method that takes or returns an object, and that a type implements: by the names of
// its methods, and of those of the types that it embeds.
func (t *tree) findSeams() {
	for name, is := range t.interfaces {
		wanted := t.methodsOf(name, is)
		if len(wanted) == 0 || !handlesObjects(is) {
			continue
		}
		for of := range maps.Keys(t.methodNames) {
			has := t.allMethods(of, map[string]bool{})
			if !slices.ContainsFunc(wanted, func(m string) bool { return !has[m] }) {
				t.seams = append(t.seams, name)
				break
			}
		}
	}
	slices.Sort(t.seams)
}

// methodsOf returns the methods of an interface with those of the ones that it embeds.
func (t *tree) methodsOf(name string, is *ast.InterfaceType) []string {
	pkg, _, _ := strings.Cut(name, ".")
	var out []string
	for _, m := range is.Methods.List {
		for _, n := range m.Names {
			out = append(out, n.Name)
		}
		if embedded := t.interfaces[qualified(pkg, m.Type)]; len(m.Names) == 0 && embedded != nil {
			out = append(out, t.methodsOf(qualified(pkg, m.Type), embedded)...)
		}
	}
	return out
}

// allMethods returns the methods of a type with those of the types and interfaces that it embeds.
func (t *tree) allMethods(name string, seen map[string]bool) map[string]bool {
	out := map[string]bool{}
	if seen[name] {
		return out
	}
	seen[name] = true
	maps.Copy(out, t.methodNames[name])
	if is := t.interfaces[name]; is != nil {
		for _, m := range t.methodsOf(name, is) {
			out[m] = true
		}
	}
	for _, embedded := range t.embeds[name] {
		maps.Copy(out, t.allMethods(embedded, seen))
	}
	return out
}

// handlesObjects reports whether a method of an interface takes or returns objects.
func handlesObjects(is *ast.InterfaceType) bool {
	found := false
	for _, m := range is.Methods.List {
		ast.Inspect(m.Type, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				found = found || slices.Contains([]string{"Unstructured", "UnstructuredList"}, sel.Sel.Name)
			}
			return true
		})
	}
	return found
}

// nameOf returns the name of the type of a receiver.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.IndexListExpr:
		return nameOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// qualified returns the name of a type with that of its package.
func qualified(pkg string, e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		return qualified(pkg, star.X)
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return pkg + "." + nameOf(e)
}
