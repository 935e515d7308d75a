package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// An UnknownName is a name that a package selects from an imported one, which has none of that name. CUE takes
// the value for one that may still come, but nothing can add a field to an imported package.
type UnknownName struct {
	Position fault.Position
	// Expression is as the author wrote it, as in health.#Available.
	Expression string
	// Name is the one that is unknown, and Known are those that the imported package has.
	Name  string
	Known []string
	// Import is the path of the imported package.
	Import string
}

// UnknownNames returns the unknown names that a package and those that it imports select, by where CUE stops at
// them. It has to be called before [Prune], which takes names away that nobody uses.
//
// A name in a disjunction, one with a question mark, as in try {a: lib.b?}, and one that is compared with _|_ anywhere
// is one that the author does without.
func UnknownNames(inst *build.Instance) map[fault.TokenPosition]UnknownName {
	f := unknownNames{declared: map[*build.Instance]declared{}, asked: map[importedName]bool{}, found: map[fault.TokenPosition]UnknownName{}}
	instances := append([]*build.Instance{inst}, inst.Dependencies()...)
	for _, i := range instances {
		f.noteAsked(i)
	}
	for _, i := range instances {
		f.read(i)
	}
	return f.found
}

// importedName is a name of an imported package.
type importedName struct {
	of   *build.Instance
	name string
}

// declared are the names of a package. If there may be others, which the text does not show, it is open.
type declared struct {
	names []string
	open  bool
}

type unknownNames struct {
	declared map[*build.Instance]declared
	// asked are the names that something compares with _|_.
	asked map[importedName]bool
	found map[fault.TokenPosition]UnknownName
}

// noteAsked notes the names of imported packages that a package compares with _|_.
func (f *unknownNames) noteAsked(inst *build.Instance) {
	note := func(e ast.Expr, beside ast.Expr) {
		if s, is := e.(*ast.SelectorExpr); is && isBottom(beside) {
			if dep, name := selectedFrom(inst, s); dep != nil {
				f.asked[importedName{dep, name}] = true
			}
		}
	}
	for n := range NodesIn(inst.Files...) {
		if b, is := n.(*ast.BinaryExpr); is {
			note(b.X, b.Y)
			note(b.Y, b.X)
		}
	}
}

func isBottom(e ast.Expr) bool {
	_, is := e.(*ast.BottomLit)
	return is
}

// read finds the unknown names that a package selects.
func (f *unknownNames) read(inst *build.Instance) {
	alternatives := 0 // how many disjunctions and question marks the node is in
	isAlternative := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op == token.OR
		case *ast.PostfixExpr:
			return n.Op == token.OPTION
		}
		return false
	}
	for _, file := range inst.Files {
		ast.Walk(file, func(n ast.Node) bool {
			if isAlternative(n) {
				alternatives++
			}
			if s, is := n.(*ast.SelectorExpr); is && alternatives == 0 {
				f.selection(inst, s)
			}
			return true
		}, func(n ast.Node) {
			if isAlternative(n) {
				alternatives--
			}
		})
	}
}

// selection notes a selection if its name is unknown.
func (f *unknownNames) selection(inst *build.Instance, s *ast.SelectorExpr) {
	dep, name := selectedFrom(inst, s)
	if dep == nil || f.asked[importedName{dep, name}] {
		return
	}
	d, known := f.declared[dep]
	if !known {
		d = declaredIn(dep)
		f.declared[dep] = d
	}
	if d.open || slices.Contains(d.names, name) {
		return
	}
	f.found[fault.TokenPositionOf(s.Sel.Pos())] = UnknownName{
		Position: fault.PositionAt(s.Pos()), Expression: Source(s), Name: name, Known: d.names, Import: dep.ImportPath,
	}
}

// selectedFrom returns the package that a selection takes a name from, and the name. The package is nil if it is
// something else, or a package of CUE itself.
func selectedFrom(inst *build.Instance, s *ast.SelectorExpr) (dep *build.Instance, name string) {
	dep = imported(inst, s.X)
	name, literal := literalLabel(s.Sel)
	if dep == nil || !literal || dep.Err != nil {
		return nil, ""
	}
	return dep, name
}

// declaredIn returns the names that the files of a package declare.
func declaredIn(inst *build.Instance) declared {
	var out declared
	for _, file := range inst.Files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.Field:
				name, literal := literalLabel(d.Label)
				_, pattern := d.Label.(*ast.ListLit)
				switch {
				case literal && strings.HasPrefix(name, "_"): // only the package itself may use it
				case literal:
					out.names = append(out.names, name)
				case !pattern: // a pattern constrains names, and adds none
					out.open = true
				}
			case *ast.EmbedDecl, *ast.Comprehension:
				out.open = true
			default: // it declares nothing that others could select
			}
		}
	}
	return out
}
