package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"operetta.dev/test/internal/screen"
)

// A testRun is a run of `go test` for some packages of a module.
type testRun struct {
	module string
	wanted func(listedPackage) bool
	// flags and env are added to those of go test.
	flags, env []string
}

// Tests run on a control plane when they import one of the two, or start it with a command.
const (
	controlPlanePackage = "operetta.dev/test/controlplane"
	harnessPackage      = "operetta.dev/test/harness"
	playPackage         = "operetta.dev/test/docs/play"
)

// Tests run in memory or on an API server when they import the one, which the other asks
// for.
const (
	eitherPackage = "operetta.dev/test/clustertest"
	liveEnv       = "OPERETTA_TEST_LIVE"
)

// Some tests take minutes when they are told to, and are named after their scenario.
const (
	longEnv   = "OPERETTA_TEST_LONG"
	longTests = "^TestE3|^TestE6OfTwo|^TestHostile"
)

// takesLong tells the packages that have such tests.
func takesLong(p listedPackage) bool {
	return slices.Contains([]string{"operetta.dev/test/e2e", "operetta.dev/test/attack"}, p.ImportPath)
}

// A listedPackage is what `go list -json` says about a package. The case of names does
// not matter when they are read.
type listedPackage struct {
	ImportPath   string   `json:"importPath"`
	Dir          string   `json:"dir"`
	TestGoFiles  []string `json:"testGoFiles"`
	XTestGoFiles []string `json:"xTestGoFiles"`
	TestImports  []string `json:"testImports"`
	XTestImports []string `json:"xTestImports"`
}

func anyPackage(listedPackage) bool { return true }

// withCluster tells the packages whose tests need a control plane.
func withCluster(p listedPackage) bool {
	imports := slices.Concat(p.TestImports, p.XTestImports)
	return p.ImportPath == playPackage || slices.Contains(imports, controlPlanePackage) || slices.Contains(imports, harnessPackage)
}

func withoutCluster(p listedPackage) bool { return !withCluster(p) }

// onEitherCluster tells the packages whose tests also run on an API server.
func onEitherCluster(p listedPackage) bool {
	return slices.Contains(slices.Concat(p.TestImports, p.XTestImports), eitherPackage)
}

// swept tells the package whose sweeps run every plan only without the race detector.
func swept(p listedPackage) bool { return p.ImportPath == "operetta.dev/engine/reconcile" }

// run is the run itself.
func (t testRun) run(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error) {
	packages, err := t.packages(ctx)
	if err != nil || len(packages) == 0 {
		return tally{}, err
	}
	r := newReport(func(line string) { s.Print(line) })
	step.Detail(fmt.Sprintf("compiling %d packages", len(packages)))
	out := &screen.Lines{Say: func(line string) {
		r.line(line)
		if r.packages > 0 || len(r.running) > 0 {
			step.Detail(r.progress(len(packages)))
		}
	}}
	cmd := goTool(ctx, slices.Concat([]string{"-C", t.module, "test", "-json"}, t.flags, packages)...)
	cmd.Env = append(os.Environ(), t.env...)
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	out.Flush()
	var exit *exec.ExitError
	if errors.As(err, &exit) && r.tally.failed > 0 {
		err = errFailed // the report has said what
	}
	return r.tally, err
}

// packages returns the import paths of the wanted packages.
func (t testRun) packages(ctx context.Context) ([]string, error) {
	var out, complaint bytes.Buffer
	cmd := goTool(ctx, "-C", t.module, "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "./...")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", t.module, err, bytes.TrimSpace(complaint.Bytes()))
	}
	var wanted []string
	for decoder := json.NewDecoder(&out); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return wanted, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", t.module, err)
		}
		if t.wanted(p) {
			wanted = append(wanted, p.ImportPath)
		}
	}
}
