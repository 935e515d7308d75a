package vet_test

import (
	"testing"
	"testing/fstest"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/golden"
)

// TestTypes checks the package of each golden file with the complete Kubernetes types, and
// compares the faults.
func TestTypes(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/types/*.txtar", func(c *golden.Case) {
		s, err := source.Loader{}.Module("shop", "", "shop", c.FS("module"))
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Fatalf("not a question of the types: %v", err)
		}
		e := vet.Examine(p, nil)
		known, _, _ := e.All()
		if len(known) > 0 {
			c.Fatalf("not a question of the types: %v", known)
		}
		faults := e.Types(known)
		if len(faults) == 0 {
			c.Want("want", "no faults")
			return
		}
		c.Want("want", faults.Error())
	})
}

// TestTypesOfWhatIsKnown shows that what is wrong without the types is said once.
func TestTypesOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"shop/shop.cue": {Data: []byte(`package shop

import "operetta.dev/schemas/operator"

operator.#Controller
group: "shop.example"
kind:  "Shop"
versions: v1: spec: {}
componets: {}
`)}}
	s, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		t.Fatal(err)
	}
	p, known, err := program.LoadFaulty(s)
	if err != nil || len(known) == 0 {
		t.Fatalf("the package is wrong, and loading it says %v, %v", known, err)
	}
	if more := vet.Examine(p, nil).Types(known); len(more) > 0 {
		t.Errorf("said twice: %v", more)
	}
}
