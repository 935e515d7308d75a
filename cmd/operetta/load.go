package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// loader reads packages, and what they depend on from the registries that CUE_REGISTRY names.
var loader = source.Loader{Modules: registry.New(registry.Options{})}

// addOverlayFlag adds the flag for folders of constraints that hold for each package. A process runs one command;
// the loader is written only when the flag is given, for tests make many commands at once.
func addOverlayFlag(cmd *cobra.Command) {
	cmd.Flags().Func("overlay", "`folder` of CUE files that are unified with the components of each package, in any order (repeatable)", func(dir string) error {
		loader.Overlays = append(loader.Overlays, dir)
		return nil
	})
	must(cmd.MarkFlagDirname("overlay"))
}

// loadOne checks and loads the one package that a folder or pattern names. A worker checks it first,
// so that loading it here is safe. The snapshot that was checked is the one that is loaded, even if
// the folder has changed in the meantime.
func loadOne(ctx context.Context, args []string) (*program.Program, error) {
	snapshot, err := readOne(args)
	if err != nil {
		return nil, err
	}
	checked, err := commandExaminer().checkAndCompile(ctx, snapshot, examineCheck)
	return checked.program, err
}

// readOne reads the one package that arguments name.
func readOne(args []string) (*source.Snapshot, error) {
	dir, err := oneFolder(args)
	if err != nil {
		return nil, err
	}
	return readPackage(dir)
}

// oneFolder returns the folder of the one package that arguments name.
func oneFolder(args []string) (string, error) {
	dirs, err := expand(args, ".")
	if err != nil {
		return "", err
	}
	if len(dirs) != 1 {
		return "", usageError{fmt.Errorf("%d packages: %s; name one", len(dirs), strings.Join(dirs, ", "))}
	}
	return dirs[0], nil
}

// loadAll checks and loads the packages in folders.
func loadAll(ctx context.Context, dirs []string) ([]*program.Program, error) {
	var out []*program.Program
	for _, dir := range dirs {
		p, err := loadOne(ctx, []string{dir})
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// readPackage returns a snapshot of the package in a folder.
func readPackage(dir string) (*source.Snapshot, error) {
	snapshot, err := loader.Folder(dir)
	if err != nil {
		return nil, folderFault(dir, err)
	}
	return snapshot, nil
}

// A subject is a package to examine.
type subject struct {
	// name is how messages name it: its folder, or its Package.
	name string
	read func(context.Context) (*source.Snapshot, error)
}

// inFolders returns the packages in folders.
func inFolders(dirs []string) []subject {
	out := make([]subject, len(dirs))
	for i, dir := range dirs {
		out[i] = subject{dir, func(context.Context) (*source.Snapshot, error) { return readPackage(dir) }}
	}
	return out
}

// examine examines a package, with the scopes of kinds whose definitions were given; see examiner.examine.
func (x subject) examine(ctx context.Context, mode string, scopes vet.Scopes, progress func(done, all int, unit string)) (finding, error) {
	snapshot, err := x.read(ctx)
	if err != nil {
		return finding{}, err
	}
	e := *commandExaminer()
	e.scopes, e.progress = scopes, progress
	return e.examine(ctx, snapshot, mode)
}

// examineFolders examines the packages that folders or patterns name, by default the one in the
// current folder. It errors if a package has faults.
func examineFolders(ctx context.Context, args []string, mode string) ([]finding, error) {
	dirs, err := expand(args, ".")
	if err != nil {
		return nil, err
	}
	return examineSubjects(ctx, inFolders(dirs), mode)
}

// examineSubjects examines packages. It errors if one has faults.
func examineSubjects(ctx context.Context, all []subject, mode string) ([]finding, error) {
	found := make([]finding, len(all))
	for i, one := range all {
		var err error
		if found[i], err = one.examine(ctx, mode, nil, nil); err != nil {
			return nil, err
		}
		if err := found[i].Faults.OrNil(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// expand returns the folders that the arguments name, or those of a fallback pattern if there are no
// arguments.
func expand(args []string, fallback string) ([]string, error) {
	dirs, err := source.Expand(orDefault(args, fallback))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noPackageFault(err)
	}
	return dirs, err
}

// folderFault returns the fault of a folder that cannot be read as a package.
func folderFault(dir string, err error) error {
	if limit, ok := errors.AsType[*source.LimitError](err); ok {
		return fault.Faults{{Message: fmt.Sprintf("package %s: %v", dir, limit)}}
	}
	if placed := placedFault(err); placed != nil {
		return placed
	}
	// Errors of package source are wrapped in the folder's name relative to the CUE module, while the user typed another path.
	return noPackageFault(fmt.Errorf("package %s: %w", dir, cmp.Or(errors.Unwrap(err), err)))
}

// placedFault returns an error of reading a package as a fault, if it says where it is.
func placedFault(err error) fault.Faults {
	if d, ok := errors.AsType[*source.DependencyError](err); ok {
		return fault.Faults{{Position: fault.Position{File: d.File, Line: d.Line}, Message: d.Error()}}
	}
	if o, ok := errors.AsType[*source.OverlayError](err); ok {
		return fault.Faults{{Position: fault.Position{File: o.File, Line: o.Line}, Message: o.Error()}}
	}
	return nil
}

// noPackageFault returns an error as a fault with a hint how to name a package.
func noPackageFault(err error) error {
	return fault.Faults{{Message: err.Error(), Hint: "name a folder with the CUE files of a package, or ./... for all packages below this one"}}
}

// orDefault returns the arguments, or the fallback if there are none.
func orDefault(args []string, fallback string) []string {
	if len(args) == 0 {
		return []string{fallback}
	}
	return args
}
