package install

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root       = "../.."
	modulePath = "operetta.dev"
	version    = "v0.0.0-test"
)

// A tracked is a file of the repository that goes into the module's zip file.
type tracked string

func (f tracked) Path() string                 { return string(f) }
func (f tracked) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(root, string(f))) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(root, string(f))) }

func TestGoInstallBuildsTheCommandFromTheModule(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file system is a module proxy by another URL there")
	}
	t.Parallel()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "-trimpath", modulePath+"/cmd/operetta@"+version)
	cmd.Dir = bin // where no go.mod is
	cmd.Env = append(os.Environ(),
		"GOBIN="+bin,
		"GOFLAGS=-modcacherw",
		"GOMODCACHE="+moduleCache(t),
		"GONOPROXY=none", "GOPRIVATE=",
		"GOPROXY=file://"+proxy(t)+","+goEnv(t, "GOPROXY"),
		"GOSUMDB=off", // go.sum has the sums of what is in the cache
		"GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "operetta"), "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("operetta version: %v\n%s", err, out)
	}
}

// moduleCache returns a module cache with all that the user's has, but for earlier versions of
// the module itself. It consists of links, since unpacking everything again takes a minute.
func moduleCache(t *testing.T) string {
	t.Helper()
	from, to := goEnv(t, "GOMODCACHE"), t.TempDir()
	for _, dir := range []string{".", filepath.Join("cache", "download")} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(to, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "cache" || strings.HasPrefix(e.Name(), modulePath) {
				continue
			}
			if err := os.Symlink(filepath.Join(from, dir, e.Name()), filepath.Join(to, dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

// goEnv returns a variable of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// proxy returns a folder that is a module proxy with the repository as it is now.
func proxy(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // it may be deleted and not yet committed
			files = append(files, tracked(name))
		}
	}
	dir := t.TempDir()
	versions := filepath.Join(dir, modulePath, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.Create(archive, module.Version{Path: modulePath, Version: version}, files); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"list":            version + "\n",
		version + ".mod":  string(mod),
		version + ".info": `{"Version":"` + version + `"}`,
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
