package architecture

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// comparing are the functions and methods that ask what a text is.
var comparing = []string{
	"Contains", "ContainsAny", "ContainsFunc", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "HasPrefix", "HasSuffix", "Index", "LastIndex",
	"Split", "SplitN", "SplitSeq", "TrimPrefix", "TrimSuffix", "Match", "MatchString", "FindString", "FindStringIndex", "FindStringSubmatch",
}

// mayReadMessages are the files that ask what a message is, each with the reason.
var mayReadMessages = map[string]string{
	"cmd/operetta/documents.go": "the reader of YAML says the line in its text alone; only where a person is sent rests on it",
	"cmd/operetta/exit.go":      "it asks whether an error says something before those that are joined in it, and not what they say",
	"engine/cluster/schema.go":  "the library gives its faults no code; only the wording of a fault that is shown anyway rests on it",
	"engine/crd/report.go":      "only the full stop at the end of a sentence rests on it, before a rule is put behind it",
	"engine/plan/text.go":       "only whether a line repeats the path that the message has rests on it",
	"engine/redact/redact.go":   "it asks whether a message is the same without the values of Secrets, and not what it says",
	"engine/shadow/work.go":     "it asks whether a note is the same as the one before, and not what it says",
	"engine/testcase/want.go":   "the author of a test wrote the pattern that the message has to match",
}

// A message is for people. What is decided by one changes with the next version of whatever
// says it; package fault gives each fault a code instead.
func TestNobodyDecidesByAMessage(t *testing.T) {
	for _, f := range source(t) {
		if f.test || !below(f.dir, []string{"engine", "cmd"}) || below(f.dir, []string{"engine/fault"}) || mayReadMessages[f.name] != "" {
			continue
		}
		for _, n := range asksForMessages(f.syntax) {
			t.Errorf("%s asks what a message is; give what says it a code or a type", f.at(n))
		}
	}
}

func TestWhoAsksForMessagesIsRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`strings.Contains(f.Message, "x")`:                                    true,
		`strings.HasPrefix(err.Error(), "x")`:                                 true,
		`pattern.MatchString(strings.TrimSpace(err.Error()))`:                 true,
		`slices.Contains(known, f.Message)`:                                   true,
		`err.Error() == "x"`:                                                  true,
		`unset != f.Message`:                                                  true,
		`func() { switch f.Message { case "x": } }`:                           true,
		`strings.Contains(f.ErrorMessage, "x")`:                               true,
		`func() { text := err.Error(); strings.Cut(text, "x") }`:              true,
		`func() { var text = f.Message; if text == "x" { return } }`:          true,
		`func() { a := f.ErrorMessage; b := a; strings.HasPrefix(b, "x") }`:   true,
		`strings.Split(err.Error(), ": ")`:                                    true,
		`strings.SplitN(f.Message, ": ", 2)`:                                  true,
		`func() { for range strings.SplitSeq(f.Message, " ") { } }`:           true,
		`strings.Fields(f.Message)`:                                           true,
		`strings.TrimPrefix(f.Message, "x")`:                                  true,
		`strings.TrimSuffix(err.Error(), "x")`:                                true,
		`func() { a := "x: " + err.Error(); strings.Cut(a, "y") }`:            true,
		`func() { a := b + ("x" + f.Message); a == "x" }`:                     true,
		`func() { a := strings.ToLower(f.Message); strings.Cut(a, "x") }`:     true,
		`func() { a := strings.Join([]string{f.Message}, ""); a == "x" }`:     true,
		`func() { a := len(b) + f(err.Error()); a == 3 }`:                     false,
		`func() { a := strings.ToLower(f.Path); strings.Cut(a, "x") }`:        false,
		`func() { a := strings.Count(b, "x") + 1; a == 3 }`:                   false,
		`func() { text := f.Path; strings.Cut(text, "x") }`:                   false,
		`func() { text := f.Message; fmt.Print(text, o.text == "x") }`:        false,
		`func() { text, err := f(err.Error()); strings.Contains(text, "x") }`: false,
		`f.Message != ""`:                                      false,
		`f.Message == o.Message`:                               false,
		`strings.Contains(f.Path, "x")`:                        false,
		`fmt.Sprint(f.Message, strings.Contains(f.Path, "x"))`: false,
		`errors.Is(err, limit)`:                                false,
		`slices.ContainsFunc(all, func(f fault.Fault) bool { return f.Message != "" })`: false,
	} {
		if found := len(asksForMessages(expression(t, text))) > 0; found != want {
			t.Errorf("%s: %v, want %v", text, found, want)
		}
	}
}

// asksForMessages returns the places in a piece of source where it is asked what a message is.
func asksForMessages(root ast.Node) []ast.Node {
	var out []ast.Node
	all := messages{}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			all = all.assignedIn(n)
		case *ast.FuncLit:
			all = all.assignedIn(n)
		}
		if all.asksFor(n) {
			out = append(out, n)
		}
		return true
	})
	return out
}

// messages are the local variables that hold messages, by their names. A name that one function gives to a message counts
// as one in all that follow within the same function.
type messages map[string]bool

// assignedIn returns the messages with those that a function assigns to variables. A function that is declared begins
// without any.
func (m messages) assignedIn(function ast.Node) messages {
	out := messages{}
	if _, inner := function.(*ast.FuncLit); inner {
		maps.Copy(out, m)
	}
	for before := -1; before != len(out); { // one variable may be assigned to another one
		before = len(out)
		ast.Inspect(function, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				out.note(n.Lhs, n.Rhs)
			case *ast.ValueSpec:
				out.note(identifiers(n.Names), n.Values)
			}
			return true
		})
	}
	return out
}

// note adds the variables to which messages are assigned.
func (m messages) note(to, from []ast.Expr) {
	if len(to) != len(from) {
		return // a call with several results is no message
	}
	for i, e := range from {
		if id, ok := to[i].(*ast.Ident); ok && id.Name != "_" && m.makes(e) {
			m[id.Name] = true
		}
	}
}

// makes reports whether an expression is a message, or a text that is made of one: by putting it behind another one, or by a
// function of package strings.
func (m messages) makes(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return m.makes(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (m.makes(e.X) || m.makes(e.Y))
	case *ast.CallExpr:
		if sel, ok := e.Fun.(*ast.SelectorExpr); ok && isNamed(sel.X, "strings") {
			return slices.ContainsFunc(e.Args, m.areIn)
		}
	}
	return m.is(e)
}

func identifiers(names []*ast.Ident) []ast.Expr {
	out := make([]ast.Expr, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}

// asksFor reports whether a piece of source asks what a message is. Whether there is
// one, and whether two are the same, is no question of what it says.
func (m messages) asksFor(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains(comparing, sel.Sel.Name) && slices.ContainsFunc(n.Args, m.areIn)
	case *ast.BinaryExpr:
		if n.Op != token.EQL && n.Op != token.NEQ || isEmptyText(n.X) || isEmptyText(n.Y) {
			return false
		}
		return m.is(n.X) != m.is(n.Y)
	case *ast.SwitchStmt:
		return n.Tag != nil && m.areIn(n.Tag)
	}
	return false
}

// is reports whether an expression is a message.
func (m messages) is(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return m[e.Name]
	case *ast.SelectorExpr:
		return strings.HasSuffix(e.Sel.Name, "Message")
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Error" && len(e.Args) == 0
	}
	return false
}

// areIn reports whether a message is, or is part of, an expression. What is in a
// function is looked at by itself.
func (m messages) areIn(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		part, ok := n.(ast.Expr)
		found = found || ok && m.is(part)
		if sel, of := n.(*ast.SelectorExpr); of && !m.is(sel) {
			found = found || m.areIn(sel.X) // and not the name behind the point
			return false
		}
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

func isEmptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `""`
}
