package crd_test

import (
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/crd"
)

// TestAStatusThatMentionsTheSpecHasNoneOfItsMarks: the number of the elements of a list
// is no list, and what repeats an immutable field changes when the resource is another.
func TestAStatusThatMentionsTheSpecHasNoneOfItsMarks(t *testing.T) {
	t.Parallel()
	root := cuecontext.New().CompileString(`
#Member: {name!: string}
#Members: [...#Member] @crd(listType=map, listMapKey=name)
#Spec: {
	// members are who is in it.
	members: [...#Member] @crd(listType=map, listMapKey=name)
	image: string @crd(immutable)
}
cr: spec: #Spec
status: {
	members: len(cr.spec.members)
	running: cr.spec.image
	known: #Members
}
`)
	made, err := crd.Generate(crd.CustomResource{
		Group: "example.com", Kind: "Team",
		Versions: []crd.Version{{
			Name: "v1", Served: true, Storage: true,
			Spec:   root.LookupPath(cue.ParsePath("#Spec")),
			Status: root.LookupPath(cue.ParsePath("status")),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	status := made.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
	if got := status["members"]; got.Type != "integer" || got.Description != "" || got.XListType != nil {
		t.Errorf("members is %+v, want a number with nothing of the list's", got)
	}
	if got := status["running"].XValidations; len(got) > 0 {
		t.Errorf("running has the rules %v, want none", got)
	}
	if got := status["known"]; got.XListType == nil || *got.XListType != "map" {
		t.Errorf("known is %+v, want the list of its type", got)
	}
}
