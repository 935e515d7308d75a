package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/fault"
)

func TestFaultsOfAResourceAreLocatedInItsFile(t *testing.T) {
	documents, err := parseDocuments("kind: Site\nspec:\n  size: 10\n")
	if err != nil {
		t.Fatal(err)
	}
	rule := fault.Position{File: "site.cue", Line: 7}
	got := documents[0].locate(fault.Faults{
		{Position: rule, Path: "spec.size", Message: "out of bound <=9"},
		{Position: rule, Path: "spec.name", Message: "is missing", Hint: "write one"},
		{Path: "metadata.name", Message: "is missing"},
	})
	want := fault.Faults{
		{Position: fault.Position{File: "<stdin>", Line: 3}, Path: "spec.size", Message: "out of bound <=9", Hint: "the rule is site.cue:7"},
		{Position: fault.Position{File: "<stdin>", Line: 2}, Path: "spec.name", Message: "is missing", Hint: "write one; the rule is site.cue:7"},
		{Position: fault.Position{File: "<stdin>", Line: 1}, Path: "metadata.name", Message: "is missing"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
