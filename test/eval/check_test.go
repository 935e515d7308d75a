package eval

import (
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// TestThePackagesOfThisRepositoryHaveNeitherFaultsNorWarnings is also what keeps package
// check from finding some where there are none.
func TestThePackagesOfThisRepositoryHaveNeitherFaultsNorWarnings(t *testing.T) {
	t.Parallel()
	dirs, err := source.Expand([]string{"../../cue/...", "../e2e/packages/...", "../e2e/testdata/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			s, err := source.Loader{}.Folder(dir)
			if err != nil {
				t.Fatal(err)
			}
			p, err := program.Load(s)
			if err != nil {
				t.Fatal(err)
			}
			faults, warnings, _ := vet.Examine(p, nil).All()
			if len(faults) > 0 {
				t.Error(faults)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
		})
	}
}
