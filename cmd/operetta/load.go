package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// loadOne checks and loads the one package that a folder or pattern names. The check
// comes first because it is a worker's: a package that passes it can be loaded here.
func loadOne(ctx context.Context, args []string) (*program.Program, error) {
	dirs, err := expand(args, ".")
	if err != nil {
		return nil, err
	}
	if len(dirs) > 1 {
		return nil, usageError{fmt.Errorf("%d packages: %s; name one", len(dirs), strings.Join(dirs, ", "))}
	}
	found, err := examine(ctx, dirs[0], examineCheck)
	if err != nil {
		return nil, err
	}
	if len(found.Faults) > 0 {
		return nil, found.Faults
	}
	return load(dirs[0])
}

// load compiles the package in a folder.
func load(dir string) (*program.Program, error) {
	_, p, err := loadVersion(dir, present)
	return p, err
}

// A packageVersion says which one of the package in a folder is meant: what is there now, or what
// is kept in the folder of the state that it names.
type packageVersion struct{ stateDir string }

// present is what is in the folder now.
var present packageVersion

// read returns the files of the version of the package in a folder.
func (v packageVersion) read(dir string) (*source.Snapshot, error) {
	if v == present {
		snapshot, err := source.Folder(dir)
		if err != nil {
			return nil, emptyFolder(dir, err)
		}
		return snapshot, nil
	}
	kept, err := source.OpenKept(v.stateDir)
	if err != nil {
		return nil, err
	}
	return kept.Load(dir)
}

// loadVersion compiles a version of the package in a folder.
func loadVersion(dir string, v packageVersion) (snapshot *source.Snapshot, p *program.Program, err error) {
	if snapshot, err = v.read(dir); err != nil {
		return nil, nil, err
	}
	// The CUE compiler panics on a few inputs that it should refuse.
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("package %s: the CUE compiler failed: %v", dir, problem)
		}
	}()
	p, err = program.Load(snapshot)
	if faults := (program.Faults)(nil); err != nil && !errors.As(err, &faults) {
		return nil, nil, fmt.Errorf("package %s: %w", dir, err)
	}
	return snapshot, p, err
}

// expand returns the folders that arguments name, or those of the pattern that stands
// for none.
func expand(args []string, fallback string) ([]string, error) {
	dirs, err := source.Expand(orDefault(args, fallback))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noPackage(err)
	}
	return dirs, err
}

// emptyFolder is the fault of a folder that cannot be read as a package.
func emptyFolder(dir string, err error) error {
	return noPackage(fmt.Errorf("package %s: %w", dir, cause(err)))
}

// noPackage is the fault of a folder in which there is nothing to load.
func noPackage(err error) error {
	return program.Faults{{Message: err.Error(), Hint: "name a folder with the CUE files of a package, or ./... for all packages below this one"}}
}

// cause returns what is behind the name that the source gives to a folder: it is
// relative to the module, and nobody typed it.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func orDefault(args []string, fallback string) []string {
	if len(args) == 0 {
		return []string{fallback}
	}
	return args
}
