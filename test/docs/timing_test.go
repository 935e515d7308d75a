package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A timing is a duration that a package declares.
type timing struct{ pkg, file, name, value, doc string }

func TestEachTimingIsInOnePlaceAndInTheTable(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	var table strings.Builder
	table.WriteString("| package | name | default | flag | what it is |\n|---|---|---|---|---|\n")
	for _, d := range timings(t) {
		if other := files[d.pkg]; other != "" && other != d.file {
			t.Errorf("%s: %s is in %s, and others are in %s", d.pkg, d.name, d.file, other)
		}
		files[d.pkg] = d.file
		if d.doc == "" {
			t.Errorf("%s: %s has no comment", d.file, d.name)
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s | %s |\n", d.pkg, d.name, d.value, flagOf(d.doc), d.doc)
	}
	name := filepath.Join(root, "docs/timing.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, got, _ := strings.Cut(string(b), "| package")
	if *update {
		if err := os.WriteFile(name, []byte(head+table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), "| package"+got); diff != "" {
		t.Errorf("docs/timing.md is not what the code says; go test ./test/docs -update writes it (-want +got):\n%s", diff)
	}
}

// timings returns the durations that packages declare, in the order of files.
func timings(t *testing.T) []timing {
	t.Helper()
	var out []timing
	for _, dir := range []string{"engine", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg, err := filepath.Rel(root, filepath.Dir(name))
			for _, decl := range f.Decls {
				if g, ok := decl.(*ast.GenDecl); ok {
					out = append(out, timingsOf(g, filepath.ToSlash(pkg), filepath.Base(name))...)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// unit is a unit of time, alone or after a number.
var unit = regexp.MustCompile(`(?:(\d+) ?\* ?)?time\.(Millisecond|Second|Minute|Hour)`)

func timingsOf(g *ast.GenDecl, pkg, file string) []timing {
	var out []timing
	for _, s := range g.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			continue
		}
		var b bytes.Buffer
		if printer.Fprint(&b, token.NewFileSet(), v.Values[0]) != nil || !unit.Match(b.Bytes()) || strings.Contains(b.String(), "time.Now") {
			continue
		}
		doc := v.Doc.Text()
		if doc == "" && len(g.Specs) == 1 {
			doc = g.Doc.Text()
		}
		out = append(out, timing{pkg, file, v.Names[0].Name, spelled(b.String()), strings.Join(strings.Fields(doc), " ")})
	}
	return out
}

// spelled returns an expression as people write durations.
func spelled(expr string) string {
	expr = unit.ReplaceAllStringFunc(expr, func(part string) string {
		m := unit.FindStringSubmatch(part)
		n := m[1]
		if n == "" {
			n = "1"
		}
		return n + " " + map[string]string{"Millisecond": "ms", "Second": "s", "Minute": "min", "Hour": "h"}[m[2]]
	})
	for _, prefix := range []string{"burstBackoff", "[]time.Duration"} {
		if rest, is := strings.CutPrefix(expr, prefix+"{"); is {
			return strings.TrimSuffix(rest, "}")
		}
	}
	return expr
}

// flagOf returns the flag that a comment names, or "".
func flagOf(doc string) string {
	if m := regexp.MustCompile(`--[a-z-]+`).FindString(doc); m != "" {
		return "`" + m + "`"
	}
	return ""
}
