package compile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEachReasonHasAdvice looks for what is given to fail and untranslatedf, and for advice that nothing gives.
func TestEachReasonHasAdvice(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 && (isCallOf(call, "fail") || isCallOf(call, "untranslatedf")) {
				if lit, ok := call.Args[1].(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(lit.Value)
					used[text] = true
				}
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				if id, ok := lit.Type.(*ast.Ident); ok && id.Name == "Reason" && name != "advice.go" {
					t.Errorf("%s has a reason that is not made by untranslatedf", name)
				}
			}
			return true
		})
	}
	for text := range used {
		if advice[text] == "" {
			t.Errorf("there is no advice for %q", text)
		}
	}
	for text := range advice {
		if !used[text] {
			t.Errorf("nothing says %q", text)
		}
	}
}

func isCallOf(call *ast.CallExpr, name string) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == name
	case *ast.SelectorExpr:
		return f.Sel.Name == name
	}
	return false
}
