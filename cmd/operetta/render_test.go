package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
)

func TestFaultsOfAResourceAreLocatedInItsFile(t *testing.T) {
	documents, err := parseDocuments("kind: Site\nspec:\n  size: 10\n")
	if err != nil {
		t.Fatal(err)
	}
	rule := program.Position{File: "site.cue", Line: 7}
	got := documents[0].locate(program.Faults{
		{Position: rule, Path: "spec.size", Message: "out of bound <=9"},
		{Position: rule, Path: "spec.name", Message: "is missing", Hint: "write one"},
		{Path: "metadata.name", Message: "is missing"},
	})
	want := program.Faults{
		{Position: program.Position{File: "<stdin>", Line: 3}, Path: "spec.size", Message: "out of bound <=9", Hint: "the rule is site.cue:7"},
		{Position: program.Position{File: "<stdin>", Line: 2}, Path: "spec.name", Message: "is missing", Hint: "write one; the rule is site.cue:7"},
		{Position: program.Position{File: "<stdin>", Line: 1}, Path: "metadata.name", Message: "is missing"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
