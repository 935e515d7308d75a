package docs

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

// TestEveryRowOfTheOper8PageHasATestOrAReason: what is the same is shown, and what is
// different has a reason.
func TestEveryRowOfTheOper8PageHasATestOrAReason(t *testing.T) {
	t.Parallel()
	proof := regexp.MustCompile("`(Test|engine/)")
	checked := 0
	for _, s := range read(t, "docs/oper8.md").Sections() {
		for line := range strings.Lines(s.Text) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.HasSuffix(cells[0], "oper8") {
				continue
			}
			checked++
			why := strings.TrimSpace(cells[2])
			same := strings.HasPrefix(cells[1], "same")
			if !proof.MatchString(why) && (same || len(strings.Fields(why)) < 4) {
				t.Errorf("docs/oper8.md: %q has neither a test nor a reason: %q", strings.TrimSpace(cells[0]), why)
			}
		}
	}
	if checked < 70 {
		t.Errorf("%d rows were found, want those of all tables", checked)
	}
}
