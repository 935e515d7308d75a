package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"operetta.dev/engine/status"
	"operetta.dev/test/internal/markdown"
)

// section returns the section of a title.
func section(t *testing.T, d markdown.Document, title string) markdown.Section {
	t.Helper()
	for _, s := range d.Sections() {
		if s.Title == title {
			return s
		}
	}
	t.Fatalf("%s: there is no section %q", d.Name, title)
	return markdown.Section{}
}

// goFiles parses the Go files of a folder of the engine, without its tests.
func goFiles(t *testing.T, folder string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "engine", folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("engine/%s has no Go files (%v)", folder, err)
	}
	var out []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// constants returns the values of the text constants of a type, in a folder of the
// engine.
func constants(t *testing.T, folder, typeName string) []string {
	t.Helper()
	var out []string
	for _, f := range goFiles(t, folder) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typeName {
				for _, v := range spec.Values {
					out = append(out, literals(v)...)
				}
			}
			return true
		})
	}
	return out
}

// literals returns the text literals that are part of an expression.
func literals(n ast.Node) []string {
	var out []string
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, s)
			}
		}
		return true
	})
	return out
}

// agree compares the names that a document has with those that the code has.
func agree(t *testing.T, what string, documented, coded []string) {
	t.Helper()
	if len(coded) == 0 {
		t.Errorf("%s: none was found in the code", what)
	}
	for _, c := range coded {
		if !slices.Contains(documented, c) {
			t.Errorf("docs/reasons.md does not explain the %s %s", what, c)
		}
	}
	for _, d := range documented {
		if !slices.Contains(coded, d) {
			t.Errorf("docs/reasons.md explains the %s %s, which does not exist", what, d)
		}
	}
}

// rows returns the cells of the rows of the tables in a text, without the heads.
func rows(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		var cells []string
		for c := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.Trim(strings.TrimSpace(c), "`"))
		}
		out = append(out, cells)
	}
	return out
}

// column returns the first cells of some rows.
func column(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r[0])
	}
	return out
}

func TestEveryReasonIsExplained(t *testing.T) {
	var documented []string
	within := false
	for _, s := range read(t, "docs/reasons.md").Sections() {
		if s.Level == 2 {
			within = s.Title == "Reasons"
		}
		if !within || s.Level != 3 {
			continue
		}
		documented = append(documented, s.Title)
		for _, part := range []string{"- *Cause:* ", "- *Remedy:* "} {
			if !strings.Contains(s.Text, part) {
				t.Errorf("docs/reasons.md: %s has no %q", s.Title, part)
			}
		}
		if strings.HasPrefix(strings.TrimSpace(s.Text), "-") {
			t.Errorf("docs/reasons.md: %s does not say what it means", s.Title)
		}
	}
	agree(t, "reason", documented, constants(t, "status", "Reason"))
}

func TestTheConditionsOfAPhaseAreThoseOfTheTable(t *testing.T) {
	one := func(s status.State) []status.Component { return []status.Component{{Name: "a", State: s}} }
	cases := map[string]struct {
		before string
		now    status.Completion
	}{
		"Created":     {"", status.Completion{Components: one(status.Applied), Change: status.Changed, Planned: true}},
		"Reconciling": {"", status.Completion{Components: one(status.Applied), Change: status.Changed}},
		"Waiting":     {"", status.Completion{Components: one(status.Applied), Change: status.Unchanged}},
		"Ready":       {"", status.Completion{Components: one(status.Verified), Change: status.Unchanged}},
		"Scaling":     {"Ready", status.Completion{Components: one(status.Applied), Change: status.Rescaled}},
		"Failed":      {"", status.Completion{Components: one(status.Failed), Change: status.Unchanged}},
		"Deleting":    {"", status.Completion{Components: one(status.Deleting), Change: status.Changed, Deleting: true}},
	}
	for _, row := range rows(section(t, read(t, "docs/reasons.md"), "Phases").Text) {
		c, ok := cases[row[0]]
		if !ok {
			t.Errorf("nothing is known that leads to phase %s", row[0])
			continue
		}
		built := status.Build(status.Input{Completion: c.now, Before: map[string]any{"phase": c.before}})
		if built["phase"] != row[0] {
			t.Errorf("the phase is %v, not %s", built["phase"], row[0])
		}
		for i, name := range []string{"Ready", "Reconciling", "Stalled"} {
			if got := conditionOf(built, name); got != row[i+1] {
				t.Errorf("%s: %s is %s, and docs/reasons.md says %s", row[0], name, got, row[i+1])
			}
		}
	}
}

func conditionOf(s map[string]any, name string) string {
	list, _ := s["conditions"].([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == name {
			text, _ := m["status"].(string)
			return text
		}
	}
	return ""
}

func TestEveryStateAndConditionIsExplained(t *testing.T) {
	d := read(t, "docs/reasons.md")
	agree(t, "state", column(rows(section(t, d, "States of a component").Text)), constants(t, "status", "State"))
	agree(t, "condition", column(rows(section(t, d, "Conditions").Text)),
		status.Conditions)
}

func TestEveryReasonOfAPatchIsExplained(t *testing.T) {
	d := read(t, "docs/reasons.md")
	agree(t, "reason of a patch", column(rows(section(t, d, "Patches").Text)), constants(t, "patch", "Reason"))
}

func TestEveryFieldOfTheStatusIsExplained(t *testing.T) {
	table, _, _ := strings.Cut(read(t, "docs/reasons.md").Text, "\n## ")
	documented := column(rows(table))
	for _, name := range status.EngineFields {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/reasons.md does not explain status.%s", name)
		}
	}
}

func TestEveryEventIsExplained(t *testing.T) {
	var coded []string
	for _, folder := range []string{"rollout", "reconcile"} {
		for _, f := range goFiles(t, folder) {
			ast.Inspect(f, func(n ast.Node) bool {
				for _, reason := range eventReasons(n) {
					if !slices.Contains(coded, reason) {
						coded = append(coded, reason)
					}
				}
				return true
			})
		}
	}
	agree(t, "event", column(rows(section(t, read(t, "docs/reasons.md"), "Events").Text)), coded)
}

// eventReasons returns the literal reason of an event that a node makes.
func eventReasons(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if ok && sel.Sel.Name == "eventf" && len(n.Args) > 0 {
			return literals(n.Args[0])
		}
	case *ast.CompositeLit:
		if isEvent(n.Type) {
			return reasonIn(n)
		}
		array, ok := n.Type.(*ast.ArrayType)
		if !ok || !isEvent(array.Elt) {
			return nil
		}
		var out []string
		for _, e := range n.Elts {
			out = append(out, reasonIn(e)...)
		}
		return out
	}
	return nil
}

// reasonIn returns the literal value of the field Reason in a composite literal.
func reasonIn(n ast.Node) []string {
	lit, ok := n.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Reason" {
				return literals(kv.Value)
			}
		}
	}
	return nil
}

func isEvent(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Event"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Event"
	}
	return false
}
