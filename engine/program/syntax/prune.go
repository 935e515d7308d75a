package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
)

// Prune removes from the packages that inst imports, directly or not, the fields
// that inst cannot reach.
//
// CUE makes an instance of each imported package for each evaluation, with an arc
// for every field of it, used or not. The package of the core Kubernetes types has
// some 750 definitions, and an operator uses a handful of them. Unpruned, they are the
// larger part of the cost of an evaluation.
func Prune(inst *build.Instance) {
	u := usage{}
	u.use(inst, everything)
	for _, dep := range inst.Dependencies() {
		for _, f := range dep.Files {
			f.Decls = slices.DeleteFunc(slices.Clone(f.Decls), func(d ast.Decl) bool {
				name, ok := fieldLabel(d)
				return ok && !u.has(dep, name)
			})
		}
	}
}

// Without removes the fields of inst that have one of some names, unless another part of inst refers to them, and the
// hidden fields and definitions that nothing refers to then. What is left evaluates to the same without them.
func Without(inst *build.Instance, names ...string) {
	u := usage{}
	stays := func(name string) bool {
		return !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#") && !slices.Contains(names, name)
	}
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			if name, ok := fieldLabel(d); ok && stays(name) {
				u.use(inst, name)
			}
		}
	}
	for _, f := range inst.Files {
		f.Decls = slices.DeleteFunc(slices.Clone(f.Decls), func(d ast.Decl) bool {
			name, ok := fieldLabel(d)
			return ok && !u.has(inst, name)
		})
	}
}

// usage holds the used fields of each package.
type usage map[*build.Instance]map[string]bool

// everything stands for all fields of a package.
const everything = ""

func (u usage) has(inst *build.Instance, name string) bool {
	return u[inst][everything] || u[inst][name]
}

// use marks a field of a package as used, and all fields that can be reached from it. Declarations
// that are not fields are never removed, so the fields that they refer to stay.
func (u usage) use(inst *build.Instance, name string) {
	if u.has(inst, name) {
		return
	}
	first := u[inst] == nil
	if first {
		u[inst] = map[string]bool{}
	}
	u[inst][name] = true
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			label, ok := fieldLabel(d)
			if name == everything || ok && label == name || !ok && first {
				u.walk(inst, d)
			}
		}
	}
}

// walk marks what a piece of a package refers to. Every name counts as one of the
// package's own fields: keeping too much does no harm.
func (u usage) walk(inst *build.Instance, n ast.Node) {
	if _, ok := n.(*ast.ImportDecl); ok {
		return
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			dep := imported(inst, n.X)
			name, ok := literalLabel(n.Sel)
			if dep == nil || !ok {
				return true
			}
			u.use(dep, name)
			return false
		case *ast.Ident:
			if dep := imported(inst, n); dep != nil {
				u.use(dep, everything)
				return true
			}
			u.use(inst, n.Name)
		}
		return true
	}, nil)
}

// imported returns the package that an expression is the name of, or nil.
func imported(inst *build.Instance, e ast.Expr) *build.Instance {
	if path := importedPath(e); path != "" {
		return inst.LookupImport(path)
	}
	return nil
}

// fieldLabel returns the name of a declaration that is a field with a literal
// name and no other: an alias is not looked for.
func fieldLabel(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.Field)
	if !ok || f.Alias != nil {
		return "", false
	}
	if _, aliased := f.Label.(*ast.Alias); aliased {
		return "", false
	}
	return literalLabel(f.Label)
}
