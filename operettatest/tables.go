package operettatest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/testcase"
	"operetta.dev/engine/vet"
)

// Run runs the tests that stand in CUE beside the package in a folder, each as a subtest.
func Run(t *testing.T, dir string) {
	t.Helper()
	p, tests := load(t, dir)
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			results, _, err := testcase.Run(t.Context(), p, []testcase.Test{test})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range results[0].Differences {
				t.Error(d)
			}
		})
	}
}

// ExploreOptions say what Explore tries. The zero value is what operetta test --explore does.
type ExploreOptions struct {
	// Test is the name of the only test to explore, or "" for all.
	Test string
	// Schedule is the name of the only schedule to try, as a failure says it, or "" for all. It is one of Test.
	Schedule string
	// Bound is how many schedules of each test are tried at most; 0 is 200.
	Bound int
}

// Explore takes the steps of the tests that stand in CUE beside the package in a folder under many schedules, as
// operetta test --explore does: the operator dies, responses are lost, caches are behind, steps come early. It fails
// the test with the first schedule of each that does not end in the same state; if all were tried, none is shorter. It
// logs how many were tried.
func Explore(t testing.TB, dir string, o ExploreOptions) {
	t.Helper()
	p, tests := load(t, dir)
	if o.Test != "" {
		tests = slices.DeleteFunc(tests, func(test testcase.Test) bool { return test.Name != o.Test })
	}
	if len(tests) == 0 {
		t.Fatalf("%s has no test %q", dir, o.Test)
	}
	found, err := testcase.Explore(t.Context(), p, tests, testcase.ExploreOptions{
		Bound: cmp.Or(o.Bound, testcase.DefaultSchedules), Schedule: o.Schedule,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		report(t, dir, o, e)
	}
}

// report fails the test if a schedule ends otherwise, with what tries it again.
func report(t testing.TB, dir string, o ExploreOptions, e testcase.Exploration) {
	t.Helper()
	switch {
	case e.Error != "":
		t.Errorf("%s: %s: it cannot be explored: %s", e.Position, e.Name, e.Error)
	case len(e.Differences) > 0:
		t.Errorf("%s: %s: %s\n  %s\nwhat happens then:\n  %s\nonce more: operettatest.Explore(t, %q, operettatest.ExploreOptions{Test: %q, Schedule: %q})",
			e.Position, e.Name, e.Schedule, strings.Join(e.Differences, "\n  "), strings.Join(e.Trace, "\n  "), dir, e.Name, e.Schedule)
	case o.Schedule != "":
		t.Logf("%s: %s: the same end", e.Name, e.Schedule)
	default:
		t.Logf("%s: the same end in %d of %d schedules", e.Name, e.Tried, e.All)
	}
}

// load loads a package with its tests. It fails the test if there are none.
func load(t testing.TB, dir string) (*program.Program, []testcase.Test) {
	t.Helper()
	with := loader
	var err error
	if with.Definitions, err = vet.ModuleDefinitions(dir); err != nil {
		t.Fatal(err)
	}
	snapshot, err := with.FolderWithTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, tests, err := testcase.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) == 0 {
		t.Fatalf("%s has no tests", dir)
	}
	return p, tests
}
