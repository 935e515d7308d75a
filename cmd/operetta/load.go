package main

import (
	"errors"
	"fmt"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// loadOne loads the one package that a folder or pattern names.
func loadOne(args []string) (*program.Program, error) {
	dirs, err := source.Expand(orDefault(args, "."))
	if err != nil {
		return nil, err
	}
	if len(dirs) > 1 {
		return nil, usageError{fmt.Errorf("%d packages: %s; name one", len(dirs), strings.Join(dirs, ", "))}
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
