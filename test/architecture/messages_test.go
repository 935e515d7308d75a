package architecture

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// comparing are the functions and methods that ask what a text is.
var comparing = []string{
	"Contains", "ContainsAny", "ContainsFunc", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "HasPrefix", "HasSuffix", "Index", "LastIndex",
	"Match", "MatchString", "FindString", "FindStringIndex", "FindStringSubmatch",
}

// mayReadMessages are the files that ask what a message is, each with the reason.
var mayReadMessages = map[string]string{
	"cmd/operetta/documents.go": "the reader of YAML says the line in its text alone; only where a person is sent rests on it",
	"engine/testcase/want.go":   "the author of a test wrote the pattern that the message has to match",
}

// A message is for people. What is decided by one changes with the next version of whatever
// says it; package fault gives each fault a code instead.
func TestNobodyDecidesByAMessage(t *testing.T) {
	for _, f := range source(t) {
		if f.test || !below(f.dir, []string{"engine", "cmd"}) || below(f.dir, []string{"engine/fault"}) || mayReadMessages[f.name] != "" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if asksForMessage(n) {
				t.Errorf("%s asks what a message is; give what says it a code or a type", f.at(n))
			}
			return true
		})
	}
}

func TestWhoAsksForMessagesIsRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`strings.Contains(f.Message, "x")`:                     true,
		`strings.HasPrefix(err.Error(), "x")`:                  true,
		`pattern.MatchString(strings.TrimSpace(err.Error()))`:  true,
		`slices.Contains(known, f.Message)`:                    true,
		`err.Error() == "x"`:                                   true,
		`unset != f.Message`:                                   true,
		`func() { switch f.Message { case "x": } }`:            true,
		`f.Message != ""`:                                      false,
		`f.Message == o.Message`:                               false,
		`strings.Contains(f.Path, "x")`:                        false,
		`fmt.Sprint(f.Message, strings.Contains(f.Path, "x"))`: false,
		`errors.Is(err, limit)`:                                false,
		`slices.ContainsFunc(all, func(f fault.Fault) bool { return f.Message != "" })`: false,
	} {
		found := false
		ast.Inspect(expression(t, text), func(n ast.Node) bool {
			found = found || asksForMessage(n)
			return true
		})
		if found != want {
			t.Errorf("%s: %v, want %v", text, found, want)
		}
	}
}

// asksForMessage reports whether a piece of source asks what a message is. Whether there is
// one, and whether two are the same, is no question of what it says.
func asksForMessage(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains(comparing, sel.Sel.Name) && slices.ContainsFunc(n.Args, holdsMessage)
	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ || isEmptyText(n.X) || isEmptyText(n.Y) {
			return false
		}
		return isMessage(n.X) != isMessage(n.Y)
	case *ast.SwitchStmt:
		return n.Tag != nil && holdsMessage(n.Tag)
	}
	return false
}

// isMessage reports whether an expression is a message.
func isMessage(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "Message"
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Error" && len(e.Args) == 0
	}
	return false
}

// holdsMessage reports whether a message is, or is part of, an expression. What is in a
// function is looked at by itself.
func holdsMessage(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		part, ok := n.(ast.Expr)
		found = found || ok && isMessage(part)
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

func isEmptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `""`
}
