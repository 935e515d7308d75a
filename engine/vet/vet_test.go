package vet_test

import (
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/golden"
)

// TestPackage checks the package of each golden file, and compares the faults.
func TestPackage(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
		s, err := source.Loader{}.Module("shop", "", "shop", c.FS("module"))
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Fatalf("not a question of the check: %v", err)
		}
		faults, warnings, _ := vet.Examine(p, nil).All()
		if c.File("warnings") != nil {
			c.Want("warnings", warnings.Error())
		}
		if len(faults) == 0 {
			c.Want("want", "no faults")
			return
		}
		c.Want("want", faults.Error())
	})
}
