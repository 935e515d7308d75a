package rights

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/binary"
)

// krewTool returns the path of a program of krew, which a module of its own pins.
func krewTool(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(harness.Suite.Root, "test", "krew"), "tool", "-n", name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go tool %s: %v%s", name, err, harness.StderrOf(err))
	}
	return strings.TrimSpace(string(out))
}

// releaseProgram returns the path of the program that makes a release, which is linked once for all tests.
var releaseProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(harness.Suite.Operetta), "release")
	return path, binary.To(context.Background(), harness.Suite.Root, path, "./config/krew")
})

// release runs the program that makes a release, and returns what it prints.
func release(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := releaseProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = harness.Suite.Root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestKrewInstallsThePluginOfARelease(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no archives for it")
	}
	dir, root := t.TempDir(), t.TempDir()
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if out, err := release(t, "-version", "v0.1.0", "-base", "https://example.com/v0.1.0/", "-out", dir, "-platforms", platform); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive := filepath.Join(dir, "operetta_v0.1.0_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	if diff := cmp.Diff(map[string]int64{"kubectl-operetta": 0o755, "LICENSE": 0o644}, modesIn(t, archive)); diff != "" {
		t.Errorf("the archive (-want +got):\n%s", diff)
	}
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "KREW_ROOT="+root, "HOME="+root, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	file := filepath.Join(dir, "operetta.yaml")
	run(krewTool(t, "validate-krew-manifest"), "-manifest", file, "-skip-install")
	run(krewTool(t, "krew"), "install", "--manifest", file, "--archive", archive) // which compares the digest
	if out := run(harness.Suite.ControlPlane.Kubectl(), "operetta", "version"); !strings.Contains(out, "operetta  v0.1.0\n") {
		t.Errorf("kubectl operetta version:\n%s", out)
	}
}

func TestAReleaseOfNoVersionIsNotMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, says string
		args         []string
	}{
		"NoVersion": {"krew compares versions", `"" is not a version`, []string{"-base", "https://example.com"}},
		"NoPrefix":  {"it is none for krew", `"0.1.0" is not a version`, []string{"-version", "0.1.0", "-base", "https://example.com"}},
		"NoBase":    {"nobody knows where the archives are", `"" is not a URL by https`, []string{"-version", "v0.1.0"}},
		"PlainHTTP": {"krew refuses it", "is not a URL by https", []string{"-version", "v0.1.0", "-base", "http://example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "out")
			out, err := release(t, append(tc.args, "-out", dir)...)
			if err == nil || !strings.Contains(out, tc.says) {
				t.Errorf("%s: %v\n%s", tc.reason, err, out)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: something was written", tc.reason)
			}
		})
	}
}

// modesIn returns the files of an archive with their modes.
func modesIn(t *testing.T, archive string) map[string]int64 {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h.Mode
	}
}
