package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// loadOne checks and loads the one package that a folder or pattern names. The check
// comes first because it is a worker's: a package that passes it can be loaded here, and what is
// loaded is what was checked, whatever is in the folder by then.
func loadOne(ctx context.Context, args []string) (*program.Program, error) {
	dirs, err := expand(args, ".")
	if err != nil {
		return nil, err
	}
	if len(dirs) > 1 {
		return nil, usageError{fmt.Errorf("%d packages: %s; name one", len(dirs), strings.Join(dirs, ", "))}
	}
	snapshot, err := readPackage(dirs[0])
	if err != nil {
		return nil, err
	}
	e, err := commands()
	if err != nil {
		return nil, err
	}
	found, err := e.examine(ctx, snapshot, examineCheck)
	if err != nil {
		return nil, err
	}
	if len(found.Faults) > 0 {
		return nil, found.Faults
	}
	return compile(snapshot)
}

// readPackage returns the package in a folder as it is now.
func readPackage(dir string) (*source.Snapshot, error) {
	snapshot, err := source.Folder(dir)
	if err != nil {
		return nil, emptyFolder(dir, err)
	}
	return snapshot, nil
}

// examine examines the package in a folder as it is now, with the scopes of kinds whose
// definitions were given; see examiner.
func examine(ctx context.Context, dir, mode string, scopes vet.Scopes) (finding, error) {
	snapshot, err := readPackage(dir)
	if err != nil {
		return finding{}, err
	}
	e, err := commands()
	if err != nil {
		return finding{}, err
	}
	return e.knowing(scopes).examine(ctx, snapshot, mode)
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
	if limit, ok := errors.AsType[*source.LimitError](err); ok {
		return program.Faults{{Message: fmt.Sprintf("package %s: %v", dir, limit)}}
	}
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
