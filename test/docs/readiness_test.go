package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/readiness"
)

// TestTheTableOfReadinessIsThatOfTheCases holds the page against the cases that the engine
// and schemas/health are tested with.
func TestTheTableOfReadinessIsThatOfTheCases(t *testing.T) {
	kinds, err := readiness.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| kind | ready | failed | generation | predicate |\n|---|---|---|---|---|\n")
	for _, k := range kinds {
		predicate := ""
		if k.Predicate != "" {
			predicate = "`" + k.Predicate + "`"
		}
		if asksMore(k) {
			predicate += " *"
		}
		fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", k.Title, k.Ready, k.Failed, k.Generation, predicate)
	}
	page := read(t, "docs/readiness.md").Text
	_, table, _ := strings.Cut(page, "\n| kind |")
	table, _, _ = strings.Cut("| kind |"+table, "\n\n")
	if diff := cmp.Diff(want.String(), table+"\n"); diff != "" {
		t.Errorf("the table of docs/readiness.md (-want +got):\n%s\nThis is what it should be:\n\n%s", diff, want.String())
	}
}

// asksMore reports whether there is an object that is ready to the built-in check and
// not to the predicate.
func asksMore(k readiness.Kind) bool {
	for _, c := range k.Cases {
		if c.Stage == readiness.Ready && c.Differs != "" {
			return true
		}
	}
	return false
}
