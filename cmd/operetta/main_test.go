package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/rogpeppe/go-internal/testscript"

	"operetta.dev/test/registrytest"
)

var update = flag.Bool("update", false, "write the outputs of the commands into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"operetta": main,
		"eager":    runEagerly,
		"patient":  runPatiently,
		"overflow": recurseForever,
		"spin":     loopForever,
		"hoard":    allocateForever,
		"gulp":     allocateAtOnce,
		"chatter":  printForever,
		"lie":      answerOtherPackage,
		"stop":     stopForAWhile,
	})
}

// runEagerly is the command, except that it shows at once how far it is.
func runEagerly() { os.Exit(runProcess(0)) }

// runPatiently is the command, except that no work takes long enough to show how far it is, however slow the machine is.
func runPatiently() { os.Exit(runProcess(time.Hour)) }

// TestScripts runs every testdata/script/*.txtar: what a user types, and what they see.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			if collector, is := os.LookupEnv("GOGC"); is { // test/stages.sh sets it; a script has its own environment
				e.Setenv("GOGC", collector)
			}
			e.Values[registryKey{}] = &startedRegistry{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"reference":  copyReference,
			"exits":      execExits,
			"deployed":   dumpDeployed,
			"recorded":   func(ts *testscript.TestScript, neg bool, args []string) { recordFirst(t, ts, neg, args) },
			"signatures": func(ts *testscript.TestScript, _ bool, args []string) { countSignatures(t, ts, args) },
			"registry":   func(ts *testscript.TestScript, neg bool, args []string) { startRegistry(t, ts, neg, args) },
		},
	})
}

// copyReference copies the reference package and its sample into the script's folder,
// as they are in the repository.
func copyReference(ts *testscript.TestScript, _ bool, _ []string) {
	root := filepath.Join("..", "..")
	for _, dir := range []string{"cue.mod", "cue/webapp", "config/samples"} {
		from := os.DirFS(filepath.Join(root, dir))
		ts.Check(fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			to := ts.MkAbs(filepath.Join(dir, name))
			if err != nil || d.IsDir() {
				return os.MkdirAll(to, 0o777)
			}
			data, err := fs.ReadFile(from, name)
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o666)
		}))
	}
}

// startRegistry starts a registry with modules, which the cue command and operetta use from then on: registry
// VERSION FOLDER .... With "stop", it ends that one.
func startRegistry(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	t.Helper()
	if neg {
		ts.Fatalf("usage: registry {VERSION FOLDER ... | stop}")
	}
	if len(args) == 1 && args[0] == "stop" {
		ts.Value(registryKey{}).(*startedRegistry).Stop()
		return
	}
	r := registrytest.New(t, false)
	ts.Value(registryKey{}).(*startedRegistry).Registry = r
	for ; len(args) > 1; args = args[2:] {
		r.PublishTree(t, args[0], os.DirFS(ts.MkAbs(args[1])))
	}
	for _, e := range r.Env(t) {
		if name, value, _ := strings.Cut(e, "="); name != "PATH" {
			ts.Setenv(name, value)
		}
	}
	ts.Setenv("REGISTRY", r.Host)
}

// countSignatures looks how many signatures the artifact with a tag has: signatures REPOSITORY:TAG {N | none}. With
// none, there is no such artifact.
func countSignatures(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	if len(args) != 2 {
		ts.Fatalf("usage: signatures REPOSITORY:TAG {N | none}")
	}
	store := ts.Value(registryKey{}).(*startedRegistry).Store
	repo, tag, _ := strings.Cut(args[0], ":")
	desc, err := store.ResolveTag(t.Context(), repo, tag)
	if args[1] == "none" {
		if err == nil {
			ts.Fatalf("%s was pushed", args[0])
		}
		return
	}
	ts.Check(err)
	r, err := store.GetTag(t.Context(), repo, strings.ReplaceAll(string(desc.Digest), ":", "-")+".sig")
	ts.Check(err)
	var m ociregistry.Manifest
	ts.Check(json.NewDecoder(r).Decode(&m))
	if got := strconv.Itoa(len(m.Layers)); got != args[1] {
		ts.Fatalf("%s signatures, want %s", got, args[1])
	}
}

// registryKey is the key of the registry of a script.
type registryKey struct{}

// startedRegistry is the registry of a script, once it was started.
type startedRegistry struct{ *registrytest.Registry }

// execExits runs a program that must end with an exit code: exits 1 operetta vet. The
// built-in ! exec accepts any code but 0.
func execExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
