package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	namedTest    = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test(?:Attack|Hostile)[A-Za-z0-9]+)\(`)
)

// TestTheThreatModelNamesEveryAttack holds the page against the tests: what it says was
// measured, and what was measured is said.
func TestTheThreatModelNamesEveryAttack(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range namedTest.FindAllStringSubmatch(string(page), -1) {
		named[m[1]] = true
	}
	files, err := filepath.Glob("../attack/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no attacks: %v", err)
	}
	declared := map[string]bool{}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declaredTest.FindAllStringSubmatch(string(source), -1) {
			declared[m[1]] = true
		}
	}
	for name := range declared {
		if !named[name] {
			t.Errorf("docs/security.md does not name %s", name)
		}
	}
	for name := range named {
		if !declared[name] {
			t.Errorf("docs/security.md names %s, which no attack is called", name)
		}
	}
}
