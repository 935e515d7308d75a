package rights

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
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
	"operetta.dev/test/machine"
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
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=") // the test wants that of nobody
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestKrewInstallsThePluginOfARelease(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
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
	expectBill(t, archive)
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

// bill is a bill of materials in the format of SPDX, as far as this test reads it.
type bill struct {
	SPDXVersion  string
	CreationInfo struct{ Created string }
	Packages     []struct {
		SPDXID, Name, VersionInfo, DownloadLocation, Comment string
		Checksums                                            []struct{ Algorithm, ChecksumValue string }
		ExternalRefs                                         []struct{ ReferenceLocator string }
	}
	Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
}

// expectBill compares the bill of materials beside an archive with the archive, and with what the Go command says of the binary in it.
func expectBill(t *testing.T, archive string) {
	t.Helper()
	var got bill
	text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".spdx.json")
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	packed, failed := os.ReadFile(archive)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if got.SPDXVersion != "SPDX-2.3" || got.CreationInfo.Created != "1970-01-01T00:00:00Z" || len(got.Packages) < 2 {
		t.Fatalf("it is no bill, or that of a moment:\n%s", text)
	}
	main, modules, known := got.Packages[0], map[string]string{}, map[string]bool{"SPDXRef-DOCUMENT": true}
	if sum := fmt.Sprintf("%x", sha256.Sum256(packed)); len(main.Checksums) != 1 || main.Checksums[0].ChecksumValue != sum || main.VersionInfo != "v0.1.0" {
		t.Errorf("it is about %+v, and the archive has the digest %s", main, sum)
	}
	for i, p := range got.Packages {
		if known[p.SPDXID] || !strings.HasPrefix(p.DownloadLocation, "https://") || len(p.ExternalRefs) != 1 || !strings.HasPrefix(p.ExternalRefs[0].ReferenceLocator, "pkg:golang/") {
			t.Errorf("the package is there twice, or nobody knows where it is: %+v", p)
		}
		if known[p.SPDXID] = true; i > 1 { // after the archive and the standard library
			modules[p.Name+" "+p.VersionInfo] = p.Comment
		}
	}
	for _, r := range got.Relationships {
		if !known[r.SpdxElementID] || !known[r.RelatedSpdxElement] {
			t.Errorf("there is no such package: %+v", r)
		}
	}
	if len(got.Relationships) != len(got.Packages) {
		t.Errorf("%d relationships of %d packages", len(got.Relationships), len(got.Packages))
	}
	want, version := madeOf(t, archive)
	if diff := cmp.Diff(want, modules); diff != "" {
		t.Errorf("the modules and their sums (-want +got):\n%s", diff)
	}
	if std := got.Packages[1]; std.Name != "std" || "go"+std.VersionInfo != version {
		t.Errorf("the standard library is %+v, want that of %s", std, version)
	}
}

// madeOf returns the modules of the binary in an archive with their sums, and its version of Go, as the Go command says them.
func madeOf(t *testing.T, archive string) (modules map[string]string, version string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(dir, "kubectl-operetta")).Output()
	if err != nil {
		t.Fatalf("go version: %v%s", err, harness.StderrOf(err))
	}
	modules = map[string]string{}
	for line := range strings.Lines(string(out)) {
		switch words := strings.Fields(line); {
		case version == "":
			version = words[len(words)-1] // of the first line
		case words[0] == "dep":
			modules[words[1]+" "+words[2]] = words[3]
		}
	}
	return modules, version
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
