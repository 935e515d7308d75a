package eval

import (
	"testing"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// TestThePackagesOfThisRepositoryHaveNoFaults is also what keeps package check from
// finding faults where there are none.
func TestThePackagesOfThisRepositoryHaveNoFaults(t *testing.T) {
	t.Parallel()
	dirs, err := source.Expand([]string{"../../cue/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			s, err := source.Folder(dir)
			if err != nil {
				t.Fatal(err)
			}
			p, err := program.Load(s)
			if err != nil {
				t.Fatal(err)
			}
			if faults := check.Package(p); len(faults) > 0 {
				t.Error(faults)
			}
		})
	}
}
