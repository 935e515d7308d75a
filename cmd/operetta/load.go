package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// loadOne checks and loads the one package that a folder or pattern names. The check
// comes first because it is a worker's: a package that passes it can be loaded here.
func loadOne(ctx context.Context, args []string) (*program.Program, error) {
	dirs, err := source.Expand(orDefault(args, "."))
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
func load(dir string) (p *program.Program, err error) {
	snapshot, err := source.Folder(dir)
	if err != nil {
		return nil, err
	}
	// The CUE compiler panics on a few inputs that it should refuse.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("package %s: the CUE compiler failed: %v", dir, cause)
		}
	}()
	p, err = program.Load(snapshot)
	if faults := (program.Faults)(nil); err != nil && !errors.As(err, &faults) {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	return p, err
}

func orDefault(args []string, fallback string) []string {
	if len(args) == 0 {
		return []string{fallback}
	}
	return args
}
