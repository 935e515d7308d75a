package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that are measured. WebApp is the reference package; the others are in packages.
var (
	webApp = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WebApp"}
	chain  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Chain"}
	batch  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Batch"}

	kinds = []schema.GroupVersionKind{webApp, chain, batch}
)

// A version is what a controller serves.
type version struct {
	kind schema.GroupVersionKind
	// resync is how often a resource is reconciled at rest.
	resync time.Duration
	// probePath is what an edit of the package changes.
	probePath string
}

// The versions of the reference operator.
const (
	usualResync  = 30 * time.Second
	usualProbe   = "/"
	changedProbe = "/healthz"
)

// serving returns the version of a kind that is measured if nothing else is said.
func serving(kind schema.GroupVersionKind) version {
	return version{kind: kind, resync: usualResync, probePath: usualProbe}
}

// A contestant is a controller that is measured.
type contestant struct {
	name string
	// running is a text of its log once it works.
	running string
	// replaced is a text of its log once it has noticed another version, if it does so while it runs.
	replaced string
	// binary is its program, from the root of the repository.
	binary string
	// prepare writes what a version needs to a folder, and returns the arguments that serve it.
	prepare func(dir string, v version) ([]string, error)
}

// The names of the contestants.
const (
	nameOperetta    = "operetta"
	nameUncompiled  = "templates off"
	nameHandwritten = "handwritten"
)

// templatesOff makes operetta evaluate by CUE alone.
const templatesOff = "--templates=off"

// contestants returns the controllers, in the order in which they are measured.
func contestants() []contestant {
	return []contestant{
		{name: nameOperetta, running: "running", replaced: "package replaced", binary: "operetta", prepare: preparePackage},
		{name: nameUncompiled, running: "running", replaced: "package replaced", binary: "operetta", prepare: prepareUncompiled},
		{name: nameHandwritten, running: "Starting workers", binary: "handwritten", prepare: prepareHandwritten},
	}
}

//go:embed packages
var packages embed.FS

// packageDir is the folder of the package of a kind.
func packageDir(dir string, kind schema.GroupVersionKind) string {
	return filepath.Join(dir, "cue", strings.ToLower(kind.Kind))
}

// preparePackage writes the package of a version.
func preparePackage(dir string, v version) ([]string, error) {
	files := fs.FS(packages)
	from := path.Join("packages", strings.ToLower(v.kind.Kind))
	if v.kind == webApp {
		files, from = os.DirFS("."), "cue/webapp"
	}
	replace := strings.NewReplacer(
		`requeueAfter: "30s"`, fmt.Sprintf("requeueAfter: %q", v.resync),
		`httpGet: {
		path: "/"`, fmt.Sprintf(`httpGet: {
		path: %q`, v.probePath),
	)
	module, err := os.ReadFile(filepath.Join("cue.mod", "module.cue"))
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "cue.mod"), 0o700),
		os.MkdirAll(packageDir(dir, v.kind), 0o700),
		os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), module, 0o600),
	)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, path.Join(from, "*.cue"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := replaceFile(filepath.Join(packageDir(dir, v.kind), path.Base(name)), replace.Replace(string(text))); err != nil {
			return nil, err
		}
	}
	return []string{"run", packageDir(dir, v.kind)}, nil
}

// prepareUncompiled is preparePackage for operetta without templates.
func prepareUncompiled(dir string, v version) ([]string, error) {
	args, err := preparePackage(dir, v)
	return append(args, templatesOff), err
}

// replaceFile writes a file as editors do: nobody sees half of it.
func replaceFile(name, text string) error {
	if was, err := os.ReadFile(name); err == nil && string(was) == text {
		return nil
	}
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// prepareHandwritten returns the flags of a version.
func prepareHandwritten(_ string, v version) ([]string, error) {
	return []string{"--kind", v.kind.Kind, "--resync", v.resync.String(), "--probe-path", v.probePath}, nil
}

// start starts a controller on a control plane.
func (c contestant) start(ctx context.Context, kubeconfig, dir string, v version) (*process, error) {
	args, err := c.prepare(dir, v)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, filepath.Join(binDir, c.binary), c.running, append(args, "--kubeconfig", kubeconfig)...)
	if err != nil && p != nil {
		p.stop()
	}
	return p, err
}

// replace makes a running controller serve another version, and returns the process that does: one that
// cannot change while it runs is started again.
func (c contestant) replace(ctx context.Context, p *process, kubeconfig, dir string, v version) (*process, error) {
	if c.replaced == "" {
		p.stop()
		return c.start(ctx, kubeconfig, dir, v)
	}
	position := p.Log.Len()
	if _, err := c.prepare(dir, v); err != nil {
		return p, err
	}
	return p, p.waitForLog(ctx, position, c.replaced)
}
