package syntax

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"
)

// LargeEnumeration is how many texts an enumeration has at least that MatchEnumerations replaces. CUE compares
// each alternative with each: a hundred of them take a millisecond, and five thousand a second, in each evaluation.
const LargeEnumeration = 200

// MatchEnumerations replaces each large enumeration of texts in a package and in what it imports by an expression that
// they match, for a small part of the cost. The replacement accepts the same texts and has the same default. It keeps the
// first text, so that there is a value to make up. Not the same is what two large enumerations have in common: as
// expressions, CUE does not compute it. It returns how messages have the expressions, and what to write in their place.
func MatchEnumerations(inst *build.Instance) (shown []string) {
	eachEnumeration(inst, func(c astutil.Cursor, with *ast.BinaryExpr, texts []string) {
		c.Replace(with)
		short := fmt.Sprintf("%q | %q | ... %s more", texts[0], texts[1], Thousands(len(texts)-2))
		shown = append(shown, Source(with.Y), short)
	})
	return shown
}

// HasLargeEnumeration reports whether MatchEnumerations would replace something.
func HasLargeEnumeration(inst *build.Instance) bool {
	found := false
	eachEnumeration(inst, func(astutil.Cursor, *ast.BinaryExpr, []string) { found = true })
	return found
}

// eachEnumeration calls a function with the place of each large enumeration of texts, what may take its place, and the texts.
func eachEnumeration(inst *build.Instance, each func(c astutil.Cursor, with *ast.BinaryExpr, texts []string)) {
	files := slices.Clone(inst.Files)
	for _, dep := range inst.Dependencies() {
		files = append(files, dep.Files...)
	}
	for _, f := range files {
		astutil.Apply(f, func(c astutil.Cursor) bool {
			e, is := c.Node().(*ast.BinaryExpr)
			if !is || e.Op != token.OR {
				return true
			}
			parts := alternatives(e)
			if texts := textsOf(parts); len(texts) >= LargeEnumeration {
				each(c, matching(parts, texts), texts)
			}
			return len(parts) < LargeEnumeration // what is in a long one is no enumeration
		}, nil)
	}
}

// alternatives returns the parts of a disjunction.
func alternatives(e ast.Expr) []ast.Expr {
	var out []ast.Expr
	for {
		b, is := e.(*ast.BinaryExpr)
		if !is || b.Op != token.OR {
			break
		}
		out = append(out, b.Y)
		e = b.X
	}
	out = append(out, e)
	slices.Reverse(out)
	return out
}

// textsOf returns the texts among the parts of a disjunction.
func textsOf(parts []ast.Expr) []string {
	var out []string
	for _, part := range parts {
		if text, is := textLiteral(part); is {
			out = append(out, text)
		}
	}
	return out
}

// matching returns a disjunction with one expression in the place of its texts.
func matching(parts []ast.Expr, texts []string) *ast.BinaryExpr {
	var kept ast.Expr
	hasText := false
	for _, part := range parts {
		if _, is := textLiteral(part); is && hasText {
			continue
		} else if is {
			hasText = true
		}
		if kept == nil {
			kept = part
			continue
		}
		kept = &ast.BinaryExpr{X: kept, Op: token.OR, Y: part}
	}
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	pattern := &ast.UnaryExpr{Op: token.MAT, X: ast.NewString(`\A(?:` + strings.Join(quoted, "|") + `)\z`)}
	ast.SetPos(pattern, parts[0].Pos())
	return &ast.BinaryExpr{X: kept, Op: token.OR, OpPos: parts[0].Pos(), Y: pattern}
}

// textLiteral returns the text of a literal that is no default.
func textLiteral(e ast.Expr) (string, bool) {
	lit, is := e.(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return "", false
	}
	text := unquoted(lit)
	return text, text != ""
}

// enumerations returns the enumerations with at least a number of values in files, in their order.
func enumerations(files []*ast.File, atLeast int) []LargePart {
	var out []LargePart
	eachNamed(files, func(name string, n ast.Node) bool {
		e, is := n.(*ast.BinaryExpr)
		if !is || e.Op != token.OR {
			return true
		}
		parts := alternatives(e)
		if len(parts) >= atLeast {
			out = append(out, LargePart{Position: positionOf(e), Name: name, Count: len(parts), Kind: Values})
		}
		return len(parts) < atLeast
	})
	return out
}
