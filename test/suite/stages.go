package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"operetta.dev/test/internal/screen"
)

// A stage is one line of the result: some commands that belong together.
type stage struct {
	name, about string
	runs        []run
	// extra leaves it out where all stages are asked for.
	extra bool
}

// A run does one part of a stage. What failed it, it either prints and answers with
// errFailed, or returns.
type run func(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error)

// clusterTests are the packages whose tests need a control plane. They wait for it
// most of the time, so they are not slowed down by the race detector's build.
var clusterTests = []string{"operetta.dev/test/e2e", "operetta.dev/test/fault"}

// The modules beside the root's.
const (
	controlPlaneModule = "test/controlplane"
	generatorModule    = "schemas/internal/k8sgen"
)

// stages are all there is, the quick ones first.
func stages() []stage {
	return []stage{
		{name: "cue", about: "CUE is formatted and valid", runs: []run{cueFiles("fmt", "--check"), cueFiles("vet", "-c=false")}},
		{name: "generated", about: "generated files are current", runs: []run{command("go", "-C", generatorModule, "run", ".", "-check")}},
		// It asks the network for modules that nothing here compiles.
		{name: "modules", about: "go.mod files are tidy", extra: true, runs: []run{tidy("."), tidy(controlPlaneModule), tidy(generatorModule)}},
		{name: "unit", about: "unit tests, with the race detector", runs: []run{
			goTest(".", unitPackages, "-race"),
			goTest(generatorModule, everyPackage),
		}},
		{name: "plane", about: "the control plane builds and works", runs: []run{
			command("go", "-C", controlPlaneModule, "run", "./cmd/controlplane", "build"),
			goTest(controlPlaneModule, everyPackage, "-timeout=20m"),
		}},
		// What they run is a binary: that its source changed, go test's cache does not see.
		{name: "e2e", about: "end-to-end tests on a control plane", runs: []run{goTest(".", clusterPackages, "-count=1", "-timeout=30m")}},
	}
}

func tidy(module string) run { return command("go", "-C", module, "mod", "tidy", "-diff") }

// tool prepares a command that ends with the context, giving it time to clean up.
func tool(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// command runs a program whose output matters only if it fails; its last line says
// how far it is.
func command(name string, args ...string) run {
	return func(ctx context.Context, _ *screen.Screen, step *screen.Step) (tally, error) {
		var said []string
		out := &screen.Lines{Say: func(line string) {
			said = append(said, line)
			step.Detail(line)
		}}
		cmd := tool(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = out, out
		err := cmd.Run()
		out.Flush()
		if err != nil {
			return tally{}, fmt.Errorf("%s\n%s: %w", strings.Join(said, "\n"), shown(name, args), err)
		}
		return tally{}, nil
	}
}

// shown is a command line for a person, who need not see every folder in it.
func shown(name string, args []string) string {
	const enough = 6
	words := append([]string{name}, args...)
	if len(words) > enough {
		words = append(words[:enough:enough], "...")
	}
	return strings.Join(words, " ")
}

// cueFiles runs a cue command on every folder with CUE files.
func cueFiles(args ...string) run {
	return func(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error) {
		dirs, err := cueFolders(".")
		if err != nil {
			return tally{}, err
		}
		return command("go", slices.Concat([]string{"tool", "cue"}, args, dirs)...)(ctx, s, step)
	}
}

// cueFolders returns the folders below root that hold CUE files, but for those of test
// data, which may be wrong on purpose.
func cueFolders(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "testdata" || d.Name() == "cue.mod" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if dir := "./" + filepath.ToSlash(filepath.Dir(path)); filepath.Ext(path) == ".cue" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
		return nil
	})
	return out, err
}

func everyPackage(string) bool { return true }

func unitPackages(pkg string) bool { return !clusterPackages(pkg) }

func clusterPackages(pkg string) bool {
	return slices.ContainsFunc(clusterTests, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// goTest runs the tests of the packages of a module.
func goTest(module string, wanted func(pkg string) bool, flags ...string) run {
	return func(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error) {
		packages, err := listPackages(ctx, module, wanted)
		if err != nil || len(packages) == 0 {
			return tally{}, err
		}
		r := newReport(func(line string) { s.Print(line) })
		step.Detail("compiling " + fmt.Sprint(len(packages), " packages"))
		out := &screen.Lines{Say: func(line string) {
			r.line(line)
			if r.packages > 0 || len(r.running) > 0 {
				step.Detail(r.progress(len(packages)))
			}
		}}
		cmd := tool(ctx, "go", slices.Concat([]string{"-C", module, "test", "-json"}, flags, packages)...)
		cmd.Stdout, cmd.Stderr = out, out
		err = cmd.Run()
		out.Flush()
		var exit *exec.ExitError
		if errors.As(err, &exit) && r.tally.failed > 0 {
			err = errFailed
		}
		return r.tally, err
	}
}

// listPackages returns the wanted packages of a module.
func listPackages(ctx context.Context, module string, wanted func(pkg string) bool) ([]string, error) {
	var complaint bytes.Buffer
	cmd := tool(ctx, "go", "-C", module, "list", "./...")
	cmd.Stderr = &complaint
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", module, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return slices.DeleteFunc(strings.Fields(string(list)), func(pkg string) bool { return !wanted(pkg) }), nil
}
