package check_test

import (
	"path/filepath"
	"testing"
	"time"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
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
	"test/scale/packages/batch",
	"test/scale/packages/chain",
}

// TestThereIsNoAlarmForPackagesInOrder checks packages that run on real clusters.
func TestThereIsNoAlarmForPackagesInOrder(t *testing.T) {
	t.Parallel()
	for _, dir := range corpus {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			report, err := check.Run(t.Context(), load(t, dir), check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, in %s", report, time.Since(began).Round(time.Millisecond))
			if report.Unmade != "" || report.Ready == 0 && report.Undecided == 0 {
				t.Errorf("nothing was checked: %s", report)
			}
			for _, f := range report.Counterexamples {
				t.Errorf("%s, shown by %v", f.Fault, f.Resource["spec"])
			}
		})
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
