package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"operetta.dev/test/internal/gotool"
)

// The module that pins what is built is no folder with a go.mod, since a
// package cannot embed the files of another module. It is written out as
// go.mod and go.sum when it is built.
//
//go:embed binaries/*.mod binaries/*.sum
var modules embed.FS

// The files of the module.
const (
	modFile = "binaries/programs.mod"
	sumFile = "binaries/programs.sum"
)

// The keeper is built from this module's own source, wherever the importing
// program runs and whether or not it has the source on disk.
//
//go:embed internal/keeper/*.go internal/keeper/cmd/*.go
var keeperSource embed.FS

// stagesFile lies beside kwok and tells it how nodes and pods proceed.
const (
	kwokProgram = "kwok"
	stagesFile  = "stages.yaml"
)

// unit is what one invocation of the Go tool builds: some programs of one module.
type unit struct {
	name  string
	about string
	// hint says what building it is like.
	hint    string
	source  fs.FS
	files   map[string]string // path in the build folder: path in source
	targets []target
	ldflags string
	// finish adds to the folder of programs what they need beside them.
	finish func(ctx context.Context, build, out string) error
}

// target is a program and the package of its main function.
type target struct{ program, pkg string }

// programsUnit is everything but the keeper. It is one module, whose requirements are those of the product where
// both have one: so each package is compiled once, and for kwok almost nothing is left to do.
func programsUnit() unit {
	kubernetes := pinned("k8s.io/kubernetes")
	parts := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
	flags := []string{"-s", "-w", "-X sigs.k8s.io/kwok/pkg/consts.Version=" + pinned("sigs.k8s.io/kwok")}
	// Without these, clients cannot parse the version that the server reports.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+kubernetes,
			"-X "+pkg+".gitMajor="+parts[0],
			"-X "+pkg+".gitMinor="+parts[1],
			"-X "+pkg+".gitTreeState=clean")
	}
	return unit{
		name:   "programs",
		about:  "kubernetes " + kubernetes + ", its etcd, and kwok",
		hint:   " (minutes, the first time)",
		source: modules,
		files:  map[string]string{"go.mod": modFile, "go.sum": sumFile},
		targets: []target{
			{"etcd", "go.etcd.io/etcd/server/v3"},
			{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
			{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
			{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
			{kwokProgram, "sigs.k8s.io/kwok/cmd/kwok"},
		},
		ldflags: strings.Join(flags, " "),
		finish:  copyStages,
	}
}

// pinned is the version of a module that the embedded go.mod requires.
func pinned(module string) string {
	// Embedded, so it can be read.
	content, _ := modules.ReadFile(modFile)
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	panic(modFile + " does not require " + module)
}

func keeperUnit() unit {
	u := unit{
		name:    "keeper",
		about:   "the keeper of processes",
		source:  keeperSource,
		files:   map[string]string{},
		targets: []target{{"keeper", "operetta.dev/test/controlplane/internal/keeper/cmd"}},
		ldflags: "-s -w",
	}
	// A walk over embedded files cannot fail.
	_ = fs.WalkDir(keeperSource, ".", func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() && !strings.HasSuffix(path, "_test.go") {
			u.files[path] = path
		}
		return nil
	})
	return u
}

// withoutExisting adds the programs that exist in a folder to paths, and returns the unit without them. kwok is
// always built, since its stages are those of its version.
func (u unit) withoutExisting(dir string, paths map[string]string) unit {
	if dir == "" {
		return u
	}
	var rest []target
	for _, t := range u.targets {
		if t.program == kwokProgram || !isFile(filepath.Join(dir, t.program)) {
			rest = append(rest, t)
			continue
		}
		paths[t.program] = filepath.Join(dir, t.program)
	}
	u.targets = rest
	return u
}

// buildFlags are common to all units.
var buildFlags = []string{"-trimpath", "-buildvcs=false"}

// key changes with anything that changes the programs, but for the Go release.
func (u unit) key() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOOS, runtime.GOARCH, buildFlags, u.ldflags, u.targets)
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		content, err := fs.ReadFile(u.source, u.files[name])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	return u.name + "-" + hex.EncodeToString(h.Sum(nil))[:12], nil
}

// ensure returns the folder that holds the unit's programs, building it first
// if it is not there. Processes that ask at the same time build it once.
func (u unit) ensure(ctx context.Context, cache string, p *progress) (string, error) {
	key, err := u.key()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", u.about, err)
	}
	out := filepath.Join(cache, key)
	if isDir(out) {
		return out, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", u.about, err)
	}
	held, err := lock(ctx, out+".lock", func() { p.printf("waiting for another process that builds %s", u.about) })
	if err != nil {
		return "", fmt.Errorf("build %s: %w", u.about, err)
	}
	defer held.Close()
	if isDir(out) {
		return out, nil
	}
	if err := u.build(ctx, out, p); err != nil {
		return "", fmt.Errorf("build %s: %w", u.about, err)
	}
	return out, nil
}

// build makes the programs beside out and then puts them in place at once, so
// that out never holds half a build.
func (u unit) build(ctx context.Context, out string, p *progress) error {
	work := out + ".building"
	// Remove the remains of an earlier build that was killed.
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source, programs := filepath.Join(work, "source"), filepath.Join(work, "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	if err := u.write(source); err != nil {
		return err
	}
	if err := u.compile(ctx, source, programs, p); err != nil {
		return err
	}
	if u.finish != nil {
		if err := u.finish(ctx, source, programs); err != nil {
			return err
		}
	}
	return os.Rename(programs, out)
}

// write writes the source of the unit to a folder.
func (u unit) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, ok := u.files["go.mod"]; !ok {
		const own = "module operetta.dev/test/controlplane\n\ngo 1.26.0\n"
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(own), 0o644); err != nil {
			return err
		}
	}
	for name, from := range u.files {
		content, err := fs.ReadFile(u.source, from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile runs the Go tool once for all targets, which keeps every core busy,
// and names the programs as they are known.
func (u unit) compile(ctx context.Context, source, programs string, p *progress) error {
	args := append([]string{"build", "-v"}, buildFlags...)
	args = append(args, "-ldflags", u.ldflags, "-o", programs+string(filepath.Separator))
	cmd := goTool(source, append(args, u.packages()...)...)
	stop := p.watch(u, programs, gotool.Stale(ctx, cmd, buildFlags, u.packages()))
	defer stop()
	var tail tail
	cmd.Stdout, cmd.Stderr = io.Discard, io.MultiWriter(&tail, p)
	if err := gotool.Run(ctx, cmd, p.niceness); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return fmt.Errorf("go build: %w (it needs the go command and, the first time, the modules); its last words:\n%s", err, &tail)
	}
	for _, t := range u.targets {
		if err := os.Rename(filepath.Join(programs, defaultName(t.pkg)), filepath.Join(programs, t.program)); err != nil {
			return err
		}
	}
	return nil
}

// packages are those of the main functions.
func (u unit) packages() []string {
	var out []string
	for _, t := range u.targets {
		out = append(out, t.pkg)
	}
	return out
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// defaultName is what the Go tool calls the program of a package.
func defaultName(pkg string) string {
	parts := strings.Split(pkg, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && majorVersion.MatchString(last) {
		return parts[len(parts)-2]
	}
	return last
}

// goTool returns the go command in dir, independent of the caller's workspace,
// flags and C compiler.
func goTool(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

// simulated are what kwok has stages for here. Those of volumes would take over from the real controller of volumes.
var simulated = []string{"node", "pod"}

// copyStages takes from kwok's module how simulated nodes and pods proceed.
func copyStages(ctx context.Context, build, out string) error {
	var dir bytes.Buffer
	list := goTool(build, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	list.Stdout = &dir
	if err := gotool.Run(ctx, list, 0); err != nil {
		return fmt.Errorf("find the module of kwok: %w", err)
	}
	var stages []string
	for _, kind := range simulated {
		// A pattern of this form is never malformed.
		found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(dir.String()), "kustomize", "stage", kind, "fast", "*.yaml"))
		stages = append(stages, found...)
	}
	var all []byte
	for _, path := range stages {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(append(all, "---\n"...), content...)
	}
	if len(all) == 0 {
		return errors.New("the module of kwok has no fast stages where they used to be; look for their new folder")
	}
	return os.WriteFile(filepath.Join(out, stagesFile), all, 0o644)
}
