package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"operetta.dev/engine/status"
)

// field is a name that a CUE file declares.
var field = regexp.MustCompile(`(?m)(#?[A-Za-z]\w*)[?!]?:`)

// declared returns every identifier of the engine, every name of the contract and every reason.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, r := range constants(t, "status", "Reason") {
		out[r] = true
	}
	for _, m := range field.FindAllStringSubmatch(read(t, "schemas/operator/operator.cue").Text, -1) {
		out[m[1]] = true
	}
	err := filepath.WalkDir(filepath.Join(root, "engine"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out[f.Name.Name] = true
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				out[id.Name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// term is a row of the glossary: the word, its meaning and where the code has it.
var term = regexp.MustCompile("(?m)^\\| ([a-z ]+) \\| .+ \\| `([^`]+)` \\|$")

func TestEveryTermOfTheGlossaryIsInTheCode(t *testing.T) {
	t.Parallel()
	known := declared(t)
	seen := map[string]bool{}
	for _, m := range term.FindAllStringSubmatch(read(t, "docs/glossary.md").Text, -1) {
		word, name := m[1], m[2]
		if !known[name] {
			t.Errorf("docs/glossary.md: %s: the code has no %s", word, name)
		}
		if seen[word] {
			t.Errorf("docs/glossary.md: %s has two meanings", word)
		}
		seen[word] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d terms were found, want those of all tables", len(seen))
	}
	if !known[string(status.ReasonNotReady)] {
		t.Error("the reasons were not read")
	}
}
