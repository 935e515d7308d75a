package syntax

import (
	"slices"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
)

// Prune removes from the packages that inst imports, directly or not, the fields
// that inst cannot reach.
//
// CUE makes an instance of each imported package for each evaluation, with an arc
// for every field of it, used or not. The package of the core Kubernetes types has
// some 750 definitions, of which an operator uses a handful, so that without this
// they are the larger part of what an evaluation costs.
func Prune(inst *build.Instance) {
	u := &usage{used: map[*build.Instance]map[string]bool{}, whole: map[*build.Instance]bool{}}
	u.useAll(inst)
	for dep := range u.deps(inst) {
		if u.whole[dep] {
			continue
		}
		for _, f := range dep.Files {
			f.Decls = u.kept(dep, f)
		}
	}
}

// kept returns the declarations of a file that are used.
func (u *usage) kept(inst *build.Instance, f *ast.File) []ast.Decl {
	return slices.DeleteFunc(slices.Clone(f.Decls), func(d ast.Decl) bool {
		name, ok := fieldLabel(d)
		return ok && !u.used[inst][name]
	})
}

// usage is which fields of which packages are used: some, or the whole of it.
type usage struct {
	used  map[*build.Instance]map[string]bool
	whole map[*build.Instance]bool
}

// deps returns all packages that inst imports.
func (u *usage) deps(inst *build.Instance) map[*build.Instance]bool {
	out := map[*build.Instance]bool{}
	todo := slices.Clone(inst.Imports)
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if !out[next] {
			out[next] = true
			todo = append(todo, next.Imports...)
		}
	}
	return out
}

// useAll marks a package as used in the whole.
func (u *usage) useAll(inst *build.Instance) {
	if u.whole[inst] {
		return
	}
	u.whole[inst] = true
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			u.walk(inst, d)
		}
	}
}

// use marks a field of a package as used, and what can be reached from it.
func (u *usage) use(inst *build.Instance, name string) {
	if u.used[inst] == nil {
		u.used[inst] = map[string]bool{}
		// What is no field is never removed, so that what it refers to stays.
		for _, f := range inst.Files {
			for _, d := range f.Decls {
				if _, ok := fieldLabel(d); !ok {
					u.walk(inst, d)
				}
			}
		}
	}
	if u.used[inst][name] {
		return
	}
	u.used[inst][name] = true
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			if label, ok := fieldLabel(d); ok && label == name {
				u.walk(inst, d)
			}
		}
	}
}

// walk marks what a piece of a package refers to. Every name counts as one of the
// package's own fields: keeping too much does no harm.
func (u *usage) walk(inst *build.Instance, n ast.Node) {
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
				u.useAll(dep)
				return true
			}
			if !u.whole[inst] {
				u.use(inst, n.Name)
			}
		}
		return true
	}, nil)
}

// imported returns the package that an expression is the name of, or nil.
func imported(inst *build.Instance, e ast.Expr) *build.Instance {
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	spec, ok := id.Node.(*ast.ImportSpec)
	if !ok {
		return nil
	}
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return nil
	}
	return inst.LookupImport(path)
}

// fieldLabel returns the name of a declaration that is a field with a literal
// name.
func fieldLabel(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.Field)
	if !ok {
		return "", false
	}
	return literalLabel(f.Label)
}
