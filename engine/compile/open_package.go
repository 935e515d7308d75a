package compile

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"

	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// A comparison with bottom, such as cr.spec.host != _|_, asks whether there is a value, and is false
// for a hole, which is none. So the data are filled in twice: with holes, and with true in the place
// of each scalar. The open form of a package asks the latter.

// open returns the package without the schema of its resource: the resource is checked before, and a
// default of the schema would take the place of a hole.
func open(p *program.Program) (*program.Recompiled, error) {
	return p.Recompile(func(inst *build.Instance) {
		declareLive(inst)
		for _, f := range inst.Files {
			for _, d := range f.Decls {
				field, ok := d.(*ast.Field)
				if !ok {
					continue
				}
				name, _, _ := ast.LabelName(field.Label)
				if name == "cr" {
					field.Value = ast.NewIdent("_")
				}
			}
		}
		conditionsAsFields(p.Syntax(), inst.Files)()
		for i, f := range inst.Files {
			inst.Files[i], _ = asksPresence(p.Syntax(), f).(*ast.File)
		}
		letsAsFields(inst.Files)
	})
}

// declareLive declares the live objects in a package that does not.
func declareLive(inst *build.Instance) {
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				if name, _, _ := ast.LabelName(field.Label); name == "live" {
					return
				}
			}
		}
	}
	f := inst.Files[0]
	f.Decls = append(f.Decls, &ast.Field{Label: ast.NewIdent("live"), Value: ast.NewIdent("_")})
}

// asksPresence rewrites the comparisons with bottom that ask for a reference only.
func asksPresence(x *syntax.Index, n ast.Node) ast.Node {
	return astutil.Apply(n, func(c astutil.Cursor) bool {
		e, ok := c.Node().(*ast.BinaryExpr)
		if !ok {
			return true
		}
		chain, root := x.Presence(e)
		if root == nil {
			return true
		}
		live := ast.NewIdent("live")
		live.NamePos = root.NamePos
		from := &ast.SelectorExpr{X: live, Sel: ast.NewString(program.PresenceField)}
		replaced := &ast.BinaryExpr{X: rerooted(chain, root, from), OpPos: e.OpPos, Op: e.Op, Y: e.Y}
		c.Replace(replaced)
		return false
	}, nil)
}

// rerooted returns a chain of selections that starts at a field of something else.
func rerooted(chain ast.Expr, root *ast.Ident, from ast.Expr) ast.Expr {
	switch e := chain.(type) {
	case *ast.ParenExpr:
		return rerooted(e.X, root, from)
	case *ast.SelectorExpr:
		return &ast.SelectorExpr{X: rerooted(e.X, root, from), Sel: e.Sel}
	case *ast.IndexExpr:
		return &ast.IndexExpr{X: rerooted(e.X, root, from), Lbrack: e.Lbrack, Index: e.Index, Rbrack: e.Rbrack}
	}
	return &ast.SelectorExpr{X: from, Sel: ast.NewIdent(root.Name)}
}
