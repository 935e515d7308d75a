package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// A module is the source of one Go module on this machine.
type module struct {
	Path, Version, Dir, Error string
}

// modules are the modules in which packages are looked up.
type modules []module

// findModules downloads modules with the go command, at the versions of this module's go.mod.
func findModules(paths ...string) (modules, error) {
	cmd := exec.Command("go", append([]string{"mod", "download", "-json"}, paths...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("go mod download: %w: %s", err, stderr.String())
	}

	var found modules
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		if m.Error != "" {
			return nil, fmt.Errorf("downloading %s: %s", m.Path, m.Error)
		}
		found = append(found, m)
	}
}

// lookup returns the module of a package, and the folder of the package.
func (ms modules) lookup(goPath string) (module, string, error) {
	for _, m := range ms {
		if rest, ok := strings.CutPrefix(goPath, m.Path+"/"); ok {
			return m, filepath.Join(m.Dir, filepath.FromSlash(rest)), nil
		}
	}
	return module{}, "", fmt.Errorf("no module holds package %s", goPath)
}
