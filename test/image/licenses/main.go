// Command licenses gathers the licences and notices of everything that a binary is built from:
// of each module whose packages it links, of folders within them that have their own, and of
// Go's standard library.
//
//	licenses ./cmd/operetta /licenses
//
// It fails when a module has none.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	const arguments = 3
	if len(os.Args) != arguments {
		fmt.Fprintln(os.Stderr, "usage: licenses PACKAGE FOLDER")
		os.Exit(2)
	}
	if err := gather(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// A module is one that is linked.
type module struct {
	Path    string  `json:"path"`
	Version string  `json:"version"`
	Dir     string  `json:"dir"`
	Replace *module `json:"replace"`
}

// A linked is a package that is linked, as go list says it.
type linked struct {
	Dir    string  `json:"dir"`
	Module *module `json:"module"`
}

// gather writes the licences of what a package is linked from into a folder.
func gather(pkg, to string) error {
	list, err := output("go", "list", "-deps", "-json=Dir,Module", pkg)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	var all []linked
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var p linked
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading what go list says: %w", err)
		}
		if p.Module != nil {
			all = append(all, p)
		}
	}
	for _, p := range all {
		n, err := p.copyLicences(to)
		if err != nil {
			return err
		}
		found[p.Module.Path] = found[p.Module.Path] || n > 0
	}
	for path, has := range found {
		if !has {
			return fmt.Errorf("%s has no licence", path)
		}
	}
	return copyGo(to)
}

// copyGo copies the licence of Go itself, which is linked as well.
func copyGo(to string) error {
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	n, err := copyFrom(strings.TrimSpace(string(root)), filepath.Join(to, "go"))
	if err == nil && n == 0 {
		err = errors.New("go has no licence")
	}
	return err
}

// copyLicences copies those of the package's folder and of the ones above it in its module, and
// returns how many there are.
func (p linked) copyLicences(to string) (int, error) {
	m := p.Module
	root, version := m.Dir, m.Version
	if m.Replace != nil {
		root, version = m.Replace.Dir, m.Replace.Version
	}
	name := m.Path
	if version != "" {
		name += "@" + version
	}
	total := 0
	for at := p.Dir; ; at = filepath.Dir(at) {
		rel, err := filepath.Rel(root, at)
		if err != nil || strings.HasPrefix(rel, "..") {
			return total, err
		}
		n, err := copyFrom(at, filepath.Join(to, name, rel))
		if err != nil {
			return total, err
		}
		total += n
	}
}

// licence is what files with licences and notices are named.
var licence = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notices?|patents)([-._].*)?$`)

// copyFrom copies the licences in a folder, and returns how many there are.
func copyFrom(from, to string) (int, error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !licence.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return n, err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return n, err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o644); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// output runs a command.
func output(name string, args ...string) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, complaint.Bytes())
	}
	return out.Bytes(), nil
}
