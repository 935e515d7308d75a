package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A PreferredAlternative is the preferred alternative of a disjunction with a default for it, such as *cr.spec.host | "localhost".
type PreferredAlternative struct {
	// Position is where the alternative is written, and Source how.
	Position fault.Position
	Source   string
	// Offset is where it begins in the file: several may be on one line.
	Offset int
	// References are what its value rests on: fields of the resource and of live objects. There are none if it rests on the
	// package alone.
	References []Reference
	// Numbers are the whole numbers in it, as they are written.
	Numbers []string
	// Default is the text or whole number that stands for the alternative, if that is a live value and nothing else, or nil.
	Default any
}

// PreferredAlternatives returns the preferred alternatives that an evaluation has once: not those of templates and of loops, of which there
// may be several, and not those that rest on configuration, on inputs or on outputs. A default that is a type is one for
// what is written elsewhere, and the alternative may fail because of that.
func PreferredAlternatives(x *Index) []PreferredAlternative {
	a := &preferredReader{index: x}
	for _, f := range x.files {
		for _, d := range f.Decls {
			if _, is := d.(*ast.ImportDecl); !is {
				a.walk(d)
			}
		}
	}
	return a.found
}

// KeepPreferred replaces disjunctions by their preferred alternatives, by the positions of these. With a replacement, it takes the
// place of the alternatives.
func KeepPreferred(inst *build.Instance, arms []PreferredAlternative, replacement ast.Expr) {
	isMeant := func(preferred ast.Expr) bool {
		position, offset := fault.PositionAt(preferred.Pos()), preferred.Pos().Offset()
		return slices.ContainsFunc(arms, func(a PreferredAlternative) bool { return a.Position == position && a.Offset == offset })
	}
	for _, f := range inst.Files {
		astutil.Apply(f, nil, func(c astutil.Cursor) bool {
			b, is := c.Node().(*ast.BinaryExpr)
			if !is || b.Op != token.OR {
				return true
			}
			preferred, _ := preferredOf(b)
			switch {
			case preferred == nil || !isMeant(preferred):
			case replacement != nil:
				c.Replace(replacement)
			default:
				c.Replace(&ast.ParenExpr{X: preferred})
			}
			return true
		})
	}
}

// preferredOf returns the preferred one of two alternatives and the other one, or nil.
func preferredOf(b *ast.BinaryExpr) (preferred, other ast.Expr) {
	x, y := unparenthesized(b.X), unparenthesized(b.Y)
	first, isFirst := x.(*ast.UnaryExpr)
	second, isSecond := y.(*ast.UnaryExpr)
	isFirst = isFirst && first.Op == token.MUL
	isSecond = isSecond && second.Op == token.MUL
	switch {
	case isFirst && !isSecond:
		return first.X, y
	case isSecond && !isFirst:
		return second.X, x
	}
	return nil, nil
}

// A preferredReader looks for arms in the text of a package.
type preferredReader struct {
	index *Index
	found []PreferredAlternative
}

func (a *preferredReader) walk(n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			return isOneField(n)
		case *ast.Comprehension:
			return !slices.ContainsFunc(n.Clauses, func(c ast.Clause) bool { _, loops := c.(*ast.ForClause); return loops })
		case *ast.BinaryExpr:
			if n.Op != token.OR {
				return true
			}
			parts := alternatives(n)
			if preferred, other := preferredOf(n); len(parts) == 2 && preferred != nil {
				a.arm(preferred, other)
			}
			for _, part := range parts {
				a.walk(part)
			}
			return false
		}
		return true
	}, nil)
}

// isOneField reports whether an evaluation has a field once: a definition, a hidden struct and a pattern are templates.
func isOneField(f *ast.Field) bool {
	name, literal := literalLabel(f.Label)
	if !literal || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "_#") {
		return false
	}
	_, isStruct := unparenthesized(f.Value).(*ast.StructLit)
	return !isStruct || !strings.HasPrefix(name, "_")
}

// arm adds an alternative, unless what it rests on does not say whether it fails for good.
func (a *preferredReader) arm(preferred, other ast.Expr) {
	if !a.isValue(other) {
		return
	}
	names, configured := a.names(preferred)
	if !names || configured {
		return
	}
	arm := PreferredAlternative{Position: fault.PositionAt(preferred.Pos()), Source: Source(unparenthesized(preferred)), Offset: preferred.Pos().Offset()}
	for _, r := range a.index.ReferencesIn(preferred) {
		if len(r.Path) < 2 || r.Path[0] != "cr" && r.Path[0] != "live" {
			return
		}
		if !slices.ContainsFunc(arm.References, func(o Reference) bool { return slices.Equal(o.Path, r.Path) }) {
			arm.References = append(arm.References, r)
		}
	}
	path := a.index.operand(preferred).Path
	if len(arm.References) == 1 && len(path) > 3 && path[0] == "live" && slices.Equal(path, arm.References[0].Path) {
		arm.Default, _ = literalOf(unparenthesized(other))
	}
	for n := range NodesIn(preferred) {
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.INT {
			arm.Numbers = append(arm.Numbers, lit.Value)
		}
	}
	a.found = append(a.found, arm)
}

// isValue reports whether an alternative is a value as far as the text shows, and no type.
func (a *preferredReader) isValue(e ast.Expr) bool {
	switch e := unparenthesized(e).(type) {
	case *ast.BasicLit, *ast.Interpolation, *ast.StructLit, *ast.ListLit, *ast.CallExpr:
		return true
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		root := chainOf(e).root()
		if root == nil || strings.Contains(root.Name, "#") {
			return false
		}
		_, filled := a.index.rooted(root)
		return filled || len(a.index.declared(root)) > 0
	}
	return false
}

// names reports whether an expression refers to fields of the package, and whether one of them leads to its configuration.
func (a *preferredReader) names(e ast.Node) (refers, configured bool) {
	seen := map[ast.Node]bool{}
	var walk func(n ast.Node)
	walk = func(n ast.Node) {
		if seen[n] || configured {
			return
		}
		seen[n] = true
		for _, id := range identsIn(n) {
			_, filled := a.index.rooted(id)
			declared := a.index.declared(id)
			refers = refers || filled || len(declared) > 0
			configured = configured || atRoot(id) && fieldName(id) == "config"
			for _, m := range declared {
				if m.value != nil && !filled {
					walk(m.value)
				}
			}
		}
	}
	walk(e)
	return refers, configured
}
