package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of docs/testing.md and docs/timing.md")

const testingPage = "docs/testing.md"

var (
	// scenario is a line of the page with the id of a scenario and what holds in it.
	scenario = regexp.MustCompile(`^\*\*([A-KW][0-9]+)\*\* [A-Z].*\.$`)
	// inName are the ids with which the name of a test begins.
	inName = regexp.MustCompile(`^Test((?:[A-KW][0-9]+)+)[A-Z]`)
	// inReason is the id with which the reason for what a test expects begins.
	inReason = regexp.MustCompile("^[\"`]([A-KW][0-9]+): ")
	anID     = regexp.MustCompile(`[A-KW][0-9]+`)
)

func TestEveryScenarioHasATestAndEveryIDOfATestIsAScenario(t *testing.T) {
	t.Parallel()
	tests := testsByScenario(t)
	page := read(t, testingPage)
	want := withTests(page.Text, tests)
	if *update {
		if err := os.WriteFile(filepath.Join(root, testingPage), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, page.Text); diff != "" {
		t.Errorf("%s is not current; go test ./test/docs -update writes it (-want +got):\n%s", testingPage, diff)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(page.Text) {
		if m := scenario.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			if listed[m[1]] {
				t.Errorf("%s has %s twice", testingPage, m[1])
			}
			listed[m[1]] = true
			if len(tests[m[1]]) == 0 {
				t.Errorf("%s: there is no test of %s", testingPage, m[1])
			}
		}
	}
	for id, names := range tests {
		if !listed[id] {
			t.Errorf("%s has no scenario %s, which these tests name: %v", testingPage, id, names)
		}
	}
}

// withTests returns the page with the list of its tests below each scenario.
func withTests(page string, tests map[string][]string) string {
	var out []string
	inList := false
	for line := range strings.SplitSeq(page, "\n") {
		if inList && (line == "" || strings.HasPrefix(line, "- `")) {
			continue // the list that is replaced
		}
		if inList {
			out = append(out, "")
		}
		inList = false
		out = append(out, line)
		if m := scenario.FindStringSubmatch(line); m != nil {
			inList = true
			out = append(out, "")
			out = append(out, tests[m[1]]...)
		}
	}
	if inList {
		out = append(out, "")
	}
	return strings.Join(out, "\n")
}

// testsByScenario returns for each id the lines of its list: a folder with its tests.
func testsByScenario(t *testing.T) map[string][]string {
	t.Helper()
	names, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string][]string{} // id, folder, tests
	for name := range strings.FieldsSeq(string(names)) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			test, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			for _, id := range idsOf(test) {
				if found[id] == nil {
					found[id] = map[string][]string{}
				}
				found[id][path.Dir(name)] = append(found[id][path.Dir(name)], "`"+test.Name.Name+"`")
			}
		}
	}
	out := map[string][]string{}
	for id, folders := range found {
		for folder, tests := range folders {
			slices.Sort(tests)
			out[id] = append(out[id], fmt.Sprintf("- `%s`: %s", folder, strings.Join(tests, ", ")))
		}
		slices.Sort(out[id])
	}
	return out
}

// idsOf returns the scenarios that a test belongs to.
func idsOf(test *ast.FuncDecl) []string {
	var out []string
	if m := inName.FindStringSubmatch(test.Name.Name); m != nil {
		out = anID.FindAllString(m[1], -1)
	}
	ast.Inspect(test, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			if m := inReason.FindStringSubmatch(literal.Value); m != nil {
				out = append(out, m[1])
			}
		}
		return true
	})
	slices.Sort(out)
	return slices.Compact(out)
}
