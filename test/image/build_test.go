package image

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// releaseVersion is the version that is compiled into the binary under test.
const releaseVersion = "v1.2.3-image"

func TestJ10TheBinaryOfTheImage(t *testing.T) {
	binary := build(t)
	t.Run("is the same where it is built again", func(t *testing.T) {
		if first, again := read(t, binary), read(t, build(t)); !bytes.Equal(first, again) {
			t.Errorf("two builds in different folders differ: %d and %d bytes", len(first), len(again))
		}
	})
	t.Run("is static", func(t *testing.T) { expectStatic(t, binary) })
	t.Run("knows its version", func(t *testing.T) {
		if out := start(t, binary, t.TempDir(), "version"); !strings.Contains(out, releaseVersion) {
			t.Errorf("operetta version says:\n%s", out)
		}
	})
	t.Run("takes packages from a mounted ConfigMap", func(t *testing.T) {
		dir := t.TempDir()
		mountConfigMap(t, filepath.Join(root, "cue", "webapp"), filepath.Join(dir, "webapp"))
		if out := start(t, binary, dir, "vet", dir+"/..."); !strings.Contains(out, "1 package, 0 faults") {
			t.Errorf("operetta vet says:\n%s", out)
		}
	})
	t.Run("brings the licences of what it is built from", func(t *testing.T) { expectLicences(t, binary) })
	t.Run("has the flags that the manifest uses", func(t *testing.T) {
		help := start(t, binary, t.TempDir(), "run", "--help")
		for _, flag := range manifestFlags(t) {
			if !strings.Contains(help, flag) {
				t.Errorf("operetta run has no flag %s", flag)
			}
		}
	})
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func expectStatic(t *testing.T, binary string) {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s, and would not start where there is no libc", p.Type)
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Error("it holds symbols for debuggers")
	}
}

// start runs the binary as the image does: in the folder of packages, with nothing in
// the environment but what the Dockerfile sets.
func start(t *testing.T, binary, dir string, args ...string) string {
	t.Helper()
	name, _, _ := strings.Cut(parseDockerfile(t).last("ENV"), "=")
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	cmd.Env = []string{name + "=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("operetta %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// mountConfigMap lays files out as the kubelet does: each is a link to one in a hidden
// folder, which is a link itself so that all change at once.
func mountConfigMap(t *testing.T, from, to string) {
	t.Helper()
	const data = "..2026_01_02_03_04_05.678"
	if err := os.CopyFS(filepath.Join(to, data), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, filepath.Join(to, "..data")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join("..data", e.Name()), filepath.Join(to, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// build runs the build command of the Dockerfile for this machine, on the files that
// the builder gets, and returns the binary.
func build(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the image is one for Linux, and what is built here would not be")
	}
	source, binary := builderContext(t), filepath.Join(t.TempDir(), "operetta")
	const output = " -o /operetta "
	command := buildCommand(t)
	if !strings.Contains(command, output) {
		t.Fatalf("the build command does not write /operetta: %s", command)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, output, " -o '"+binary+"' ", 1))
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION="+releaseVersion, "PWD="+source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, bytes.TrimSpace(out))
	}
	return binary
}

// buildCommand returns the command line of the Dockerfile that builds the binary,
// without the options of RUN.
func buildCommand(t *testing.T) string {
	t.Helper()
	for _, i := range parseDockerfile(t)[0] {
		if i.name != "RUN" || !strings.Contains(i.args, "go build") || !strings.Contains(i.args, "./cmd/operetta") {
			continue
		}
		return withoutMounts(i.args)
	}
	t.Fatal("the Dockerfile has no go build")
	return ""
}

// withoutMounts returns the command of a RUN instruction without its options.
func withoutMounts(args string) string {
	words := strings.Fields(args)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--mount") }), " ")
}

// builderContext returns a folder with the files that .dockerignore does not exclude.
func builderContext(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	to, tree := t.TempDir(), os.DirFS(root)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "bin"):
			return fs.SkipDir
		case d.IsDir() || ignored(name, patterns):
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// ignored reports whether a file is kept from the builder. As far as it goes here: the
// last pattern that matches the file or a folder above it decides, ! turns one round,
// and **/ stands for any folders.
func ignored(name string, patterns []string) bool {
	out := false
	for _, p := range patterns {
		p, keep := strings.CutPrefix(p, "!")
		if matchesAt(p, name) {
			out = !keep
		}
	}
	return out
}

func matchesAt(pattern, name string) bool {
	base, anywhere := strings.CutPrefix(pattern, "**/")
	for part := name; part != "."; part = path.Dir(part) {
		subject := part
		if anywhere {
			subject = path.Base(part)
		}
		if ok, err := path.Match(base, subject); ok && err == nil {
			return true
		}
	}
	return false
}
