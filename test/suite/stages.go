package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/screen"
)

// A stage is one line of the result: some runs that belong together.
type stage struct {
	name, about string
	runs        []run
	// extra leaves it out where all stages are asked for.
	extra bool
}

// A run does one part of a stage. What failed it, it either prints and answers with
// errFailed, or returns.
type run func(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error)

// The modules beside the root's.
const (
	controlPlaneModule = "test/controlplane"
	generatorModule    = "schemas/internal/k8sgen"
)

// stages are all there is, the quick ones first.
func stages() []stage {
	return []stage{
		{name: "cue", about: "CUE is formatted and valid", runs: []run{cueFiles("fmt", "--check"), cueFiles("vet", "-c=false")}},
		{name: "generated", about: "generated files are current", runs: []run{goCommand("-C", generatorModule, "run", ".", "-check")}},
		// It asks the network for modules that nothing here compiles.
		{name: "modules", about: "go.mod files are tidy", extra: true, runs: []run{tidy("."), tidy(controlPlaneModule), tidy(generatorModule)}},
		{name: "build", about: "bin/operetta builds", runs: []run{buildBinary}},
		{name: "unit", about: "unit tests, with the race detector", runs: []run{
			testRun{module: ".", wanted: withoutCluster, flags: []string{"-race"}}.run,
			testRun{module: generatorModule, wanted: anyPackage}.run,
		}},
		{name: "sweep", about: "a crash after every single write", runs: []run{testRun{module: ".", wanted: swept}.run}},
		{name: "fuzz", about: "decoders of what comes from outside, fed for " + fuzzTime + " each", runs: []run{
			fuzzRun{module: "."}.run, fuzzRun{module: controlPlaneModule}.run, fuzzRun{module: generatorModule}.run,
		}},
		{name: "plane", about: "the control plane builds and works", runs: []run{
			goCommand("-C", controlPlaneModule, "run", "./cmd/controlplane", "build"),
			testRun{module: controlPlaneModule, wanted: anyPackage, flags: []string{"-timeout=20m"}}.run,
		}},
		{name: "live", about: "unit tests that can, on an API server", runs: []run{
			testRun{module: ".", wanted: onEitherCluster, flags: []string{"-count=1"}, env: append(binaryEnvironment(), liveEnv+"=yes")}.run,
		}},
		{name: "e2e", about: "tests on a control plane", runs: []run{
			// They run a binary: that its source changed, the cache of go test does not see.
			// They are compiled as it is, so that both share their packages.
			testRun{module: ".", wanted: withCluster, flags: []string{"-count=1", "-timeout=30m"}, env: binaryEnvironment()}.run,
		}},
		// Their short versions are among those.
		{name: "long", about: "the tests on a control plane that take minutes", extra: true, runs: []run{
			testRun{module: ".", wanted: takesLong, flags: []string{"-count=1", "-timeout=30m", "-run=" + longTests}, env: append(binaryEnvironment(), longEnv+"=yes")}.run,
		}},
	}
}

func tidy(module string) run { return goCommand("-C", module, "mod", "tidy", "-diff") }

func buildBinary(ctx context.Context, _ *screen.Screen, step *screen.Step) (tally, error) {
	return tally{}, binary.Build(ctx, step)
}

// binaryEnvironment makes every go build and go test compile as the binary is.
func binaryEnvironment() []string {
	flags := append(strings.Fields(os.Getenv("GOFLAGS")), binary.Flags...)
	return append([]string{"GOFLAGS=" + strings.Join(flags, " ")}, binary.Environment...)
}

// goTool prepares a go command that ends with the context, with time to clean up.
func goTool(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goCommand runs a go command whose output matters only if it fails; its last line
// says how far it is.
func goCommand(args ...string) run {
	return func(ctx context.Context, _ *screen.Screen, step *screen.Step) (tally, error) {
		var said []string
		out := &screen.Lines{Say: func(line string) {
			said = append(said, line)
			step.Detail(line)
		}}
		cmd := goTool(ctx, args...)
		cmd.Stdout, cmd.Stderr = out, out
		err := cmd.Run()
		out.Flush()
		if err != nil {
			return tally{}, fmt.Errorf("%s\n%s: %w", strings.Join(said, "\n"), shown(args), err)
		}
		return tally{}, nil
	}
}

// shown is a go command for a person, who need not see every folder in it.
func shown(args []string) string {
	const enough = 6
	if len(args) > enough {
		args = append(args[:enough:enough], "...")
	}
	return "go " + strings.Join(args, " ")
}

// cueFiles runs a cue command on every folder with CUE files.
func cueFiles(args ...string) run {
	return func(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error) {
		dirs, err := cueFolders(".")
		if err != nil {
			return tally{}, err
		}
		return goCommand(slices.Concat([]string{"tool", "cue"}, args, dirs)...)(ctx, s, step)
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
