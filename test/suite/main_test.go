package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/internal/screen"
)

// capture runs stages on a screen that is a file, and returns what it shows.
func capture(ctx context.Context, t *testing.T, all []stage) (string, tally, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := screen.New(f)
	total, failed := runAll(ctx, s, all)
	s.Close()
	out, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n"), total, failed
}

// gives is a run with a result.
func gives(got tally, err error) run {
	return func(context.Context, *screen.Screen, *screen.Step) (tally, error) { return got, err }
}

func lastLine(out string) string { return out[strings.LastIndex(out, "\n")+1:] }

func TestTheLastLineIsTheSumOfAllStages(t *testing.T) {
	out, total, err := capture(t.Context(), t, []stage{
		{name: "cue", runs: []run{gives(tally{}, nil)}},
		{name: "unit", runs: []run{gives(tally{passed: 3}, nil), gives(tally{passed: 1, skipped: 2}, nil)}},
	})
	if want := "4 passed, 0 failed, 2 skipped"; lastLine(out) != want || total.failed != 0 || err != nil {
		t.Errorf("%v, want %q at the end of:\n%s", err, want, out)
	}
}

func TestAStageThatFailsKeepsNoOtherFromRunning(t *testing.T) {
	out, _, err := capture(t.Context(), t, []stage{
		{name: "cue", runs: []run{gives(tally{}, errors.New("names.cue is not formatted"))}},
		{name: "unit", runs: []run{gives(tally{passed: 3, failed: 1}, errFailed)}},
		{name: "e2e", runs: []run{gives(tally{passed: 1}, nil)}},
	})
	if want := "4 passed, 2 failed, 0 skipped"; lastLine(out) != want || err == nil {
		t.Errorf("%v, want %q at the end of:\n%s", err, want, out)
	}
	for _, want := range []string{"names.cue is not formatted", "✗ cue", "✗ unit", "✓ e2e"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

func TestAnInterruptedSuiteHasFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, total, err := capture(ctx, t, []stage{
		{name: "cue", runs: []run{func(context.Context, *screen.Screen, *screen.Step) (tally, error) {
			cancel()
			return tally{passed: 1}, nil
		}}},
		{name: "unit", runs: []run{gives(tally{passed: 7}, nil)}},
	})
	if total != (tally{passed: 1, failed: 1}) || err == nil {
		t.Errorf("%s, %v:\n%s", total, err, out)
	}
}

func TestStagesAreChosenByName(t *testing.T) {
	all := []stage{{name: "cue"}, {name: "modules", extra: true}, {name: "unit"}}
	for want, names := range map[string][]string{
		"cue unit":    nil,
		"unit cue":    {"unit", "cue"},
		"modules":     {"modules"},
		"no such one": {"lint"},
	} {
		chosen, err := choose(append([]stage(nil), all...), names)
		var got []string
		for _, s := range chosen {
			got = append(got, s.name)
		}
		if err != nil {
			got = []string{"no such one"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q are %q, want %q", names, got, want)
		}
	}
}

func TestEveryFolderWithCUEIsCheckedButTestData(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"cue/a/a.cue", "cue/a/b.cue", "cue/c/d/d.cue", "cue.mod/module.cue", "x/testdata/wrong.cue", ".git/x.cue", "go/main.go"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := cueFolders(".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"./cue/a", "./cue/c/d"}, got); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
}

func TestTestsOnAControlPlaneAreTheirOwnStage(t *testing.T) {
	for name, c := range map[string]struct {
		pkg  listedPackage
		want bool
	}{
		"tests that import it":             {pkg: listedPackage{XTestImports: []string{"testing", controlPlanePackage}}, want: true},
		"tests that import what shares it": {pkg: listedPackage{TestImports: []string{harnessPackage}}, want: true},
		"tests that run it":                {pkg: listedPackage{ImportPath: playPackage}, want: true},
		"tests that do without":            {pkg: listedPackage{TestImports: []string{"testing"}}},
		"a command whose tests do, too":    {pkg: listedPackage{ImportPath: "operetta.dev/test/suite"}},
	} {
		if withCluster(c.pkg) != c.want || withoutCluster(c.pkg) == c.want {
			t.Errorf("%s: %v", name, withCluster(c.pkg))
		}
	}
}

func TestTestsThatTakeLongAreThere(t *testing.T) {
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is like %s: %v", pattern, err)
		}
		var all strings.Builder
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(source)
		}
		return all.String()
	}
	if !strings.Contains(read("../harness/*.go"), strconv.Quote(longEnv)) {
		t.Errorf("package harness does not know %s", longEnv)
	}
	tests := read("../e2e/*_test.go") + read("../attack/*_test.go")
	for name := range strings.SplitSeq(longTests, "|") {
		if !strings.Contains(tests, "func "+strings.TrimPrefix(name, "^")) {
			t.Errorf("no test is like %s", name)
		}
	}
}

func TestTestsOnEitherClusterRunTwice(t *testing.T) {
	got, err := testRun{module: "../..", wanted: onEitherCluster}.packages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"operetta.dev/engine/cluster", "operetta.dev/engine/rollout"}, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	// With another name they would run in memory, twice.
	source, err := os.ReadFile("../clustertest/clustertest.go")
	if err != nil || !strings.Contains(string(source), `"`+liveEnv+`"`) {
		t.Errorf("clustertest does not know %s: %v", liveEnv, err)
	}
}
