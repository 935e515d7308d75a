package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOper8PageNamesTestsThatExist holds the page for people who know oper8 against
// the tests that it names: a renamed test must not leave a promise without proof.
func TestOper8PageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "oper8.md"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-hoE", `^func Test[A-Za-z0-9]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := string(out)
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Errorf("the page names %d tests, want most of its rows to", len(named))
	}
	for _, m := range named {
		if !strings.Contains(known+"\n", "func "+m[1]+"\n") {
			t.Errorf("docs/oper8.md names %s, which does not exist", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(engine/[a-z0-9/.-]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("docs/oper8.md: %v", err)
		}
	}
}
