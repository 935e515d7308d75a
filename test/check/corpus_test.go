package check_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// root is the folder of the module.
const root = "../.."

// corpus are packages that are in order.
var corpus = []string{
	"cue/webapp",
	"test/e2e/packages/kafka",
	"test/e2e/packages/kafkatopic",
	"test/e2e/packages/platform",
	"test/e2e/packages/postgres",
	"test/e2e/packages/queue",
	"test/e2e/packages/team",
	"test/e2e/testdata/corpus",
	"test/check/testdata/deadline",
	"test/scale/packages/batch",
	"test/scale/packages/chain",
}

// TestThereIsNoAlarmForPackagesInOrder does what vet does, with packages that run on real clusters.
func TestThereIsNoAlarmForPackagesInOrder(t *testing.T) {
	t.Parallel()
	for _, dir := range corpus {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			p := load(t, dir)
			expectNoAlarm(t, vet.Examine(p, nil))
			report, err := check.Run(t.Context(), p, check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, in %s", report, time.Since(began).Round(time.Millisecond))
			if report.Unmade != "" || report.Ready == 0 && report.Undecided == 0 {
				t.Errorf("nothing was checked: %s", report)
			}
			for _, f := range slices.Concat(report.Counterexamples, report.Unready) {
				t.Errorf("%s, shown by %v", f.Fault, f.Resource["spec"])
			}
		})
	}
}

// expectNoAlarm fails if the rules or the types find a fault in a package, or something to warn of.
func expectNoAlarm(t *testing.T, e *vet.Examination) {
	t.Helper()
	faults, warnings, _ := e.All()
	for _, f := range slices.Concat(faults, e.Types(faults), warnings) {
		t.Error(f)
	}
}

func load(t *testing.T, dir string) *program.Program {
	t.Helper()
	s, err := source.Loader{}.Folder(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
