package check_test

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// TestACheckEndsWhenItsTimeIsUp: what was found until then is in the report, as it was found.
func TestACheckEndsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/a-duplicate-object-in-one-mode.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, must(txtar.FS(archive))); err != nil {
		t.Fatal(err)
	}
	s, err := source.Loader{}.Module("shop", "", "shop", os.DirFS(dir+"/module"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		reason                string
		asked                 int
		cases, untried, found int
	}{
		"AtOnce":      {"the simplest resource is always tried", 0, 1, 5, 0},
		"Shrinking":   {"all were tried, and there is no time to make one small", 5, 6, 0, 1},
		"EnoughOfAll": {"nothing ends early", 1000, 6, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, told := 0, 0
			got, err := check.Run(t.Context(), p, check.Options{
				Enough: func() bool { asked++; return asked > row.asked },
				Found:  func(check.Counterexample) { told++ },
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.Cases != row.cases || got.Untried != row.untried || len(got.Counterexamples) != row.found || told != row.found {
				t.Errorf("%s: got %+v, and was told %d", row.reason, got, told)
			}
			if row.asked == 5 && asked != 6 {
				t.Errorf("%s: it went on, and asked %d times", row.reason, asked)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestDefaultsForWhichThereIsNoTimeAreSaid: the report does not look as if they were tried.
func TestDefaultsForWhichThereIsNoTimeAreSaid(t *testing.T) {
	t.Parallel()
	p := largePackage(t, `tier: "small" | "large" | *"small"`, `, memory: *(_memory[cr.spec.tier] & =~"^[0-9]+$") | "32Mi"`, "_memory: small: \"64Mi\"\n_memory: large: \"1Gi\"")
	for asked := range 6 {
		left := asked
		got, err := check.Run(t.Context(), p, check.Options{Enough: func() bool { left--; return left < 0 }})
		if err != nil {
			t.Fatal(err)
		}
		want := check.Truncation{Path: "defaults", Unit: "preferred alternatives", Tried: 0, Of: 1}
		if said := slices.Contains(got.Parts, want); said == (len(got.Counterexamples) > 0) {
			t.Errorf("after %d: found %v, and said %v", asked, got.Counterexamples, got.Parts)
		}
	}
}
