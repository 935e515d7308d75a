package architecture

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"
	"time"

	"operetta.dev/test/machine"
)

// shortLimit is how long a limit by the clock has to be at least, unless package machine makes it longer on a
// busy machine. Where other tests compute, what takes a second may take ten.
const shortLimit = 30 * time.Second

// expiring is how long a limit is at most that a test wants to expire, or for which it does something.
const expiring = time.Second

func TestTestsHaveNoShortLimitsByTheClock(t *testing.T) {
	machine.Serial(t)
	for _, f := range source(t) {
		if !f.test && !below(f.dir, []string{"test/harness", "test/clustertest"}) || uses(f, "testing/synctest") {
			continue // where the clock is that of a test, it does not depend on the machine
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if d := limitOf(n); d > expiring && d < shortLimit {
				t.Errorf("%s: a busy machine exceeds a limit of %s: use machine.Patience, machine.Limit or harness.Within of packages in test", f.at(n), d)
			}
			return true
		})
	}
}

// limitOf returns the limit by the clock that a node of a syntax tree sets with a constant, or 0: that of a context,
// a point in time, or what a measured duration is compared with.
func limitOf(n ast.Node) time.Duration {
	switch n := n.(type) {
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case called.Sel.Name == "WithTimeout" && len(n.Args) == 2:
			return durationOf(n.Args[1])
		case called.Sel.Name == "Add" && isCallOf(called.X, "Now"):
			return durationOf(n.Args[0])
		}
	case *ast.BinaryExpr:
		if n.Op == token.GTR && (isCallOf(n.X, "Since") || isNamed(n.X, "took")) {
			return durationOf(n.Y)
		}
	}
	return 0
}

// isCallOf reports whether an expression calls a function of package time.
func isCallOf(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isNamed(called.X, "time") && called.Sel.Name == name
}

// isNamed reports whether an expression is an identifier.
func isNamed(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

// durationOf returns the value of a constant as in 5 * time.Second, and 0 for any other expression.
func durationOf(e ast.Expr) time.Duration {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if isNamed(e.X, "time") {
			return map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]
		}
	case *ast.BinaryExpr:
		if count, ok := e.X.(*ast.BasicLit); ok && e.Op == token.MUL {
			n, _ := strconv.Atoi(count.Value) // 0 for what is no whole number
			return time.Duration(n) * durationOf(e.Y)
		}
	}
	return 0
}

func TestLimitsByTheClockAreFound(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"context.WithTimeout(ctx, 5*time.Second)":         5 * time.Second,
		"context.WithTimeout(ctx, machine.Patience)":      0,
		"time.Now().Add(time.Second)":                     time.Second,
		"deadline.Add(time.Second)":                       0,
		"took > 3*time.Second":                            3 * time.Second,
		"took > machine.Limit(3*time.Second)":             0,
		"time.Since(began) > 20*time.Millisecond":         20 * time.Millisecond,
		"took < 3*time.Second":                            0,
		"harness.Within(t, 5*time.Second, \"it\", check)": 0,
	} {
		if got := limitOf(expression(t, text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
