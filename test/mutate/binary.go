package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/tools/go/packages"
)

// binaries are the test binaries of all packages that are measured and tested with, in a folder, made of
// one source with all mutants in it, each behind a switch.
type binaries struct {
	dir     string
	root    string // the folder of the module
	mutants []mutant
}

// path returns the test binary of a package.
func (b *binaries) path(pkg string) string { return filepath.Join(b.dir, filepath.Base(pkg)+".test") }

// runtimePackage is the package that mutated source calls, below the module.
const runtimePackage = "test/mutate/mutant"

// build compiles the binaries into a folder.
func build(ctx context.Context, dir string, chosen []target) (*binaries, error) {
	files, module, err := findAll(ctx, chosen)
	if err != nil {
		return nil, err
	}
	b := &binaries{dir: dir, root: module.Dir}
	leftOut := map[int]bool{}
	for {
		overlay, err := writeOverlay(dir, module.Path+"/"+runtimePackage, files, leftOut)
		if err != nil {
			return nil, err
		}
		problems, err := b.compile(ctx, overlay, chosen)
		if err != nil {
			return nil, err
		}
		if len(problems) == 0 {
			break
		}
		if !leaveOut(problems, files, leftOut) {
			return nil, fmt.Errorf("the mutated source does not compile: %v", problems)
		}
	}
	for _, f := range files {
		b.mutants = append(b.mutants, slices.DeleteFunc(f.mutants, func(m mutant) bool { return leftOut[m.id] })...)
	}
	return b, nil
}

// findAll returns the files of the targets with their mutants.
func findAll(ctx context.Context, chosen []target) ([]*file, *packages.Module, error) {
	var out []*file
	var module *packages.Module
	lastID := 0
	for _, t := range chosen {
		loaded, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadSyntax | packages.NeedModule}, "./engine/"+t.name)
		if err != nil {
			return nil, nil, err
		}
		pkg := loaded[0]
		if len(pkg.Errors) > 0 {
			return nil, nil, fmt.Errorf("./engine/%s: %w", t.name, pkg.Errors[0])
		}
		module = pkg.Module
		for i, syntax := range pkg.Syntax {
			content, err := os.ReadFile(pkg.CompiledGoFiles[i])
			if err != nil {
				return nil, nil, err
			}
			name, err := filepath.Rel(module.Dir, pkg.CompiledGoFiles[i])
			if err != nil {
				return nil, nil, err
			}
			out = append(out, find(t.name, name, content, pkg, syntax, &lastID))
		}
	}
	return out, module, nil
}

// writeOverlay writes the mutated files and an overlay file for the go command, whose name it returns.
func writeOverlay(dir, importing string, files []*file, leftOut map[int]bool) (string, error) {
	replace := map[string]string{}
	for _, f := range files {
		changed := filepath.Join(dir, shortName(f.name))
		if err := os.MkdirAll(filepath.Dir(changed), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(changed, f.mutate(importing, leftOut), 0o600); err != nil {
			return "", err
		}
		replace[f.path] = changed
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}

// A problem is a place that does not compile.
type problem struct {
	file string // its base name, and that of its folder
	line int
}

// problemText matches what the compiler says about a place.
var problemText = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// compile compiles the binaries. It returns the places that do not compile, if there are some.
func (b *binaries) compile(ctx context.Context, overlay string, chosen []target) ([]problem, error) {
	for _, pkg := range testPackages(chosen) {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", b.path(pkg), pkg)
		said, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		if _, failed := errors.AsType[*exec.ExitError](err); !failed || ctx.Err() != nil {
			return nil, err
		}
		var problems []problem
		for _, m := range problemText.FindAllSubmatch(said, -1) {
			line, _ := strconv.Atoi(string(m[2]))
			problems = append(problems, problem{shortName(string(m[1])), line})
		}
		if len(problems) == 0 {
			return nil, fmt.Errorf("go test -c %s: %w\n%s", pkg, err, bytes.TrimSpace(said))
		}
		return problems, nil
	}
	return nil, nil
}

// shortName returns the name of a file and its folder: the compiler names a file below the working
// directory, that of the module, or that of the overlay.
func shortName(name string) string {
	return filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name))
}

// leaveOut notes the mutants in places that do not compile, and reports whether there are new ones.
func leaveOut(problems []problem, files []*file, leftOut map[int]bool) bool {
	before := len(leftOut)
	for _, f := range files {
		for _, m := range f.mutants {
			if slices.Contains(problems, problem{shortName(f.name), m.line}) {
				leftOut[m.id] = true
			}
		}
	}
	return len(leftOut) > before
}

// testPackages returns the packages whose tests are needed.
func testPackages(chosen []target) []string {
	var out []string
	for _, t := range chosen {
		out = append(out, t.tests...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
