package testcache_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/internal/testcache"
)

// What the process is told whose result go test is to keep, and not to keep: its repository, and a file that somebody edits while it
// runs.
const (
	dependsOn = "OPERETTA_TEST_DEPENDS_ON"
	edits     = "OPERETTA_TEST_EDITS"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	root := os.Getenv(dependsOn)
	if root == "" {
		return m.Run(), nil
	}
	repository, err := testcache.Look(root)
	if err != nil {
		return 0, err
	}
	return repository.Run(m)
}

// TestWhichDepends is the test whose result is kept.
func TestWhichDepends(t *testing.T) {
	os.Getenv(dependsOn) // go test sees none that TestMain reads
	if edited := os.Getenv(edits); edited != "" {
		write(t, edited, "edited while the test ran")
	}
}

// The go command keeps one list of inputs for a test binary and its arguments, so these tests do not run at the same time.

func TestAResultIsKeptUntilAFileHasChanged(t *testing.T) {
	files := []string{"cmd/operetta/main.go", "cue/webapp/webapp.cue", "test/e2e/packages/queue/queue.cue", "config/crd/crd.yaml", "go.sum"}
	root := repository(t, append(files, "docs/faq.md")...)
	environment := dependsOn + "=" + root
	if kept(t, environment) || !kept(t, environment) {
		t.Fatal("a result was there before the first run, or is not kept after it")
	}
	for _, name := range append(files, "cue/new.cue") {
		write(t, filepath.Join(root, name), "after that")
		if kept(t, environment) {
			t.Errorf("%s has changed, and the result is kept", name)
		}
	}
	write(t, filepath.Join(root, "docs/faq.md"), "after that")
	if !kept(t, environment) {
		t.Error("a document has changed, and the result is not kept")
	}
}

func TestAResultIsNotKeptIfAFileHasChangedWhileTheTestsRan(t *testing.T) {
	root := repository(t, "cue/webapp/webapp.cue")
	for range 2 {
		if kept(t, dependsOn+"="+root, edits+"="+filepath.Join(root, "cue/webapp/webapp.cue")) {
			t.Error("the result is about the file as it was, and is kept for the file as it is")
		}
	}
}

// repository returns a root with some files. It is in the module, since the go command looks at no other files.
func repository(t *testing.T, files ...string) string {
	t.Helper()
	within, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "results"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(within, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp(within, "testcache") //nolint:usetesting // that is elsewhere
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, name := range files {
		write(t, filepath.Join(root, name), "before")
	}
	return root
}

// kept reports whether go test prints a result that it has kept.
func kept(t *testing.T, environment ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-run=^TestWhich", ".")
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Contains(string(out), "(cached)")
}

// write writes a file that is not new: the go command keeps no result of a test that has read one of the last two seconds.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir := path; filepath.Base(filepath.Dir(dir)) != "results"; dir = filepath.Dir(dir) {
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}
