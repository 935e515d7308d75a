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

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/status"
)

// field is a name that a CUE file declares.
var field = regexp.MustCompile(`(?m)(#?[A-Za-z]\w*)[?!]?:`)

// declared returns every identifier of the engine, also behind the name of its package, every name of the contract and every reason.
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
				out[id.Name], out[f.Name.Name+"."+id.Name] = true, true
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

// term is a row of the glossary: the word, its meaning and where the code has it, with the package where that matters.
var term = regexp.MustCompile("^\\| ([A-Za-z -]+) \\| .+ \\| `([^`]+)`(?: of package `([a-z]+)`)? \\|$")

// heading are the first two rows of each table.
var heading = regexp.MustCompile(`^\|( term \||---\|)`)

// A termRow is a row of the glossary.
type termRow struct{ word, name string }

// termRows returns the rows of the tables in a text, and the rows that do not have the form of one.
func termRows(text string) (rows []termRow, malformed []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") || heading.MatchString(line) {
			continue
		}
		m := term.FindStringSubmatch(line)
		if m == nil {
			malformed = append(malformed, line)
			continue
		}
		name := m[2]
		if m[3] != "" {
			name = m[3] + "." + name
		}
		rows = append(rows, termRow{m[1], name})
	}
	return rows, malformed
}

func TestEveryTermOfTheGlossaryIsInTheCode(t *testing.T) {
	t.Parallel()
	known := declared(t)
	seen := map[string]bool{}
	rows, malformed := termRows(read(t, "docs/glossary.md").Text)
	for _, line := range malformed {
		t.Errorf("docs/glossary.md: this row is not a word, its meaning and a name in the code: %s", line)
	}
	for _, r := range rows {
		if !known[r.name] {
			t.Errorf("docs/glossary.md: %s: the code has no %s", r.word, r.name)
		}
		if seen[r.word] {
			t.Errorf("docs/glossary.md: %s has two meanings", r.word)
		}
		seen[r.word] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d terms were found, want those of all tables", len(seen))
	}
	if !known[string(status.ReasonNotReady)] {
		t.Error("the reasons were not read")
	}
}

func TestEveryRowOfTheGlossaryIsRead(t *testing.T) {
	t.Parallel()
	table := strings.Join([]string{
		"Some | text", "| term | meaning | in the code |", "|---|---|---|",
		"| plain word | a meaning | `plain` |", "| Capital | a meaning with `code` | `Capital` |", "| with-hyphen | a meaning | `hyphen` of package `some` |",
		"| no name | a meaning | nowhere |", "| two | columns |", "",
	}, "\n")
	rows, malformed := termRows(table)
	want := []termRow{{"plain word", "plain"}, {"Capital", "Capital"}, {"with-hyphen", "some.hyphen"}}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(termRow{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"| no name | a meaning | nowhere |", "| two | columns |"}, malformed); diff != "" {
		t.Errorf("what is no row (-want +got):\n%s", diff)
	}
}
