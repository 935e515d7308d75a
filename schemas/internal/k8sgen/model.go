package main

// A ref names a declared Go type.
type ref struct{ pkg, name string }

// A pkg is a parsed package, with the declarations to print in the order of the source.
type pkg struct {
	source
	module  string // module and version it was read from
	version string // API version, the last element of dir
	group   string // API group, empty for core
	decls   []*decl
	byName  map[string]*decl
}

// apiVersion returns the apiVersion of the objects of the package.
func (p *pkg) apiVersion() string {
	if p.group == "" {
		return p.version
	}
	return p.group + "/" + p.version
}

// name returns the name of the CUE package.
func (p *pkg) name() string {
	return p.version
}

// A shape is the form of a declaration in CUE.
type shape int

const (
	structShape shape = iota // fields
	objectShape              // fields, after apiVersion and kind
	typeShape                // another type: scalar, list, map or alias
	enumShape                // the disjunction of the constants in values
	constShape               // one value
)

// A decl is a definition to print.
type decl struct {
	name   string
	doc    []string
	shape  shape
	fields []field
	typ    typ
	enum   bool
	values []string // CUE literals: all values of an enum, or the value of a constant
	// constOf is the declared type of a constant, zero for an untyped one.
	constOf ref
	// same is the type of another package that this one is declared as: type List metav1.List.
	same ref
}

// A field is one member of a struct, with the fields of embedded structs still unresolved.
type field struct {
	name     string
	doc      []string
	typ      typ
	required bool
	embedded bool
}

// A kind is the form of a typ.
type kind int

const (
	exprKind    kind = iota // a CUE expression
	namedKind               // a declared type
	listKind                // a list of elem
	mapKind                 // a map from string to elem
	unknownKind             // a Go type that has no CUE; expr says which
)

// A typ is a Go type that is being translated to CUE, without pointers.
type typ struct {
	kind kind
	expr string
	ref  ref
	elem *typ
}

// refs calls visit with every declared type in t.
func (t typ) refs(visit func(ref)) {
	switch {
	case t.kind == namedKind:
		visit(t.ref)
	case t.elem != nil:
		t.elem.refs(visit)
	}
}
