package syntax

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
)

// imports leads from the text of a package to that of the packages that it imports.
type imports struct {
	instance *build.Instance
	// read are the indices of imported packages. They have nothing but the fields.
	read map[*build.Instance]*Index
	// uses are those in the package itself.
	uses *uses
}

// selected returns the index of the imported package whose field a selection is, and the name of the field. The
// index is nil if it is something else, a package of CUE itself, or one whose fields the text does not show.
func (x *Index) selected(e *ast.SelectorExpr) (in *Index, name string) {
	if x.imports == nil {
		return nil, ""
	}
	dep := imported(x.imports.instance, e.X)
	name, ok := literalLabel(e.Sel)
	if dep == nil || !ok || dep.Err != nil {
		return nil, ""
	}
	in = x.imports.read[dep]
	if in == nil {
		r := newReader(dep.Files)
		r.imports = &imports{instance: dep, read: x.imports.read}
		r.readFields()
		in = r.Index
		in.foreign = in.foreign || usesSelf(dep.Files)
		x.imports.read[dep] = in
	}
	if in.foreign {
		return nil, ""
	}
	return in, name
}
