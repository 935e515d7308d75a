package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
)

const initLong = `Make a new operator package: a folder with the package, its tests and a sample resource, which pass
operetta vet and operetta test at once. The folder may have any path. It must be new or empty, and
its name is the name of the package.

The package belongs to the CUE module of its folder or of a folder above it. If there is none, one
is made in the current folder, or next to the package if that is not in the current folder. The
module gets a copy of the contract and the Kubernetes types in cue.mod/pkg, so that editors, cue
vet and cue export understand the package without a registry; operetta itself uses those that it
was built with. Without a folder, only this copy is brought up to date, as after an upgrade of
operetta.

It changes no file that exists, except for that copy.`

// initFlags are the settings of `operetta init`.
type initFlags struct{ group, kind, module string }

// initialized is what operetta init has made, as JSON.
type initialized struct {
	// Files are the files of the package, and of the module if one was made.
	Files []string `json:"files"`
}

func newInit(s streams) *cobra.Command {
	var f initFlags
	var output string
	cmd := &cobra.Command{
		Use:   "init [folder]",
		Short: "Make a new package with tests and a sample",
		Long:  initLong,
		Example: `  operetta init greeter
  operetta vet ./greeter
  operetta test ./greeter

  operetta init queue --kind MessageQueue --group platform.example.com --module example.com/operators`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(s, output, args) },
	}
	cmd.Flags().StringVar(&f.group, "group", "example.com", "API group of the custom resource")
	cmd.Flags().StringVar(&f.kind, "kind", "", "kind of the custom resource; by default the name with a capital letter")
	cmd.Flags().StringVar(&f.module, "module", "", "path of the CUE module, if one is made; by default the group and /operators")
	outputFlag(cmd, &output, formatText, formatJSON)
	return cmd
}

func (f initFlags) run(s streams, output string, args []string) error {
	at, made, err := f.packageFiles(args)
	if err != nil {
		return err
	}
	told := s
	if output == formatJSON {
		told.out = io.Discard
	}
	names, err := f.write(told, at, made)
	switch {
	case err != nil:
		return err
	case output == formatJSON:
		return printJSON(s.out, initialized{append([]string{}, names...)}) // an empty list is no null
	case len(made) > 0:
		folder := asArgument(at.folder)
		printLinef(s.out, "next: operetta vet %s && operetta test %s", folder, folder)
	}
	return nil
}

// packageFiles returns the package that an argument names, with its files, or none.
func (f initFlags) packageFiles(args []string) (newPackage, []scaffold.File, error) {
	if len(args) == 0 {
		return newPackage{}, nil, nil
	}
	at, err := newPackageAt(args[0])
	if err != nil {
		return at, nil, err
	}
	made, err := scaffold.Package{Name: at.name, Group: f.group, Kind: cmp.Or(f.kind, scaffold.KindOf(at.name))}.Files()
	if err != nil {
		return at, nil, usageError{err}
	}
	return at, made, nil
}

// asArgument returns a folder as commands take one that is below the current one.
func asArgument(folder string) string {
	if filepath.IsLocal(folder) && folder != "." {
		return "./" + folder
	}
	return folder
}

// A newPackage is where a package is to be made. The zero value stands for none: only the module is brought up to date.
type newPackage struct {
	// folder is the folder of the package, and name that folder's name and that of the package.
	folder, name string
}

// newPackageAt returns the package that has a folder, which may be written in any way: as a name, a path or a dot.
func newPackageAt(folder string) (newPackage, error) {
	if folder == "" {
		return newPackage{}, nil // it has no name, as the check of the package says
	}
	whole, err := filepath.Abs(folder)
	return newPackage{filepath.Clean(folder), filepath.Base(whole)}, err
}

// write writes the files of a package, and makes a module for it if it is in none. It changes no file that exists. It
// returns the names of what it has made.
func (f initFlags) write(s streams, at newPackage, made []scaffold.File) (names []string, err error) {
	root, known, err := at.moduleRoot()
	if err != nil {
		return nil, err
	}
	module, err := f.moduleFiles(root, known)
	if err != nil {
		return nil, usageError{err}
	}
	if len(made) > 0 {
		if err := empty(at.folder); err != nil {
			return nil, err
		}
	}
	for i, file := range made {
		made[i].Path = strings.TrimPrefix(file.Path, at.name+"/")
	}
	for _, w := range []struct {
		root  string
		files []scaffold.File
	}{{at.folder, made}, {root, module}} {
		if err := writeFiles(w.root, w.files); err != nil {
			return nil, err
		}
		for _, m := range w.files {
			names = append(names, filepath.Join(w.root, filepath.FromSlash(m.Path)))
			printLinef(s.out, "made %s", names[len(names)-1])
		}
	}
	return names, refreshContract(s, root)
}

// moduleFiles returns what makes a folder a module, or nothing if it is one.
func (f initFlags) moduleFiles(root string, known bool) ([]scaffold.File, error) {
	if known && f.module != "" {
		return nil, fmt.Errorf("--module: there is a module already: %s", filepath.Join(root, "cue.mod"))
	}
	if known {
		return nil, nil
	}
	files, err := scaffold.Module{Path: cmp.Or(f.module, f.group+"/operators")}.Files()
	if err != nil {
		return nil, fmt.Errorf("--module %s: %w", f.module, err)
	}
	return files, nil
}

// moduleRoot returns the folder of the CUE module that the package is in, and whether there is one. Without one it is the
// current folder if the package is in that, and otherwise the folder around the package.
func (n newPackage) moduleRoot() (root string, known bool, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", false, err
	}
	start, _, err := source.ModuleOf(n.folder) // the folder itself if it is in no module
	if err != nil {
		return "", false, err
	}
	if fileExists(filepath.Join(start, "cue.mod", "module.cue")) {
		return shorter(here, start), true, nil
	}
	if within, err := filepath.Rel(here, start); err == nil && filepath.IsLocal(within) {
		return ".", false, nil
	}
	return filepath.Dir(n.folder), false, nil
}

// shorter returns a folder as it is, or relative to the current one if that is shorter.
func shorter(here, folder string) string {
	if within, err := filepath.Rel(here, folder); err == nil && len(within) < len(folder) {
		return within
	}
	return folder
}

// empty errors if a folder exists and has something in it. What begins with a dot, such as .git, and the files of the module do
// not count.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	switch info, failed := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case failed == nil && !info.IsDir():
		return fmt.Errorf("%s is a file, and nothing was changed: name a new or an empty folder", folder)
	case err != nil:
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "cue.mod" {
			return fmt.Errorf("the folder %s is not empty (it has %s), and nothing was changed: name a new or an empty folder", folder, e.Name())
		}
	}
	return nil
}

// writeFiles writes files that do not exist. It stops at the first that does.
func writeFiles(root string, files []scaffold.File) error {
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = file.Write(f.Content)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// refreshContract makes the copy of the contract in a module the one of this binary.
func refreshContract(s streams, root string) error {
	files, err := scaffold.Contract()
	if err != nil {
		return err
	}
	if at := filepath.Join(root, "schemas", "schemas.go"); fileExists(at) {
		return nil // this is the module with the contract itself
	}
	changed, err := removeStale(root, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.Path))
		if before, err := os.ReadFile(name); err == nil && bytes.Equal(before, f.Content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Content, 0o644); err != nil {
			return err
		}
		changed++
	}
	if changed > 0 {
		printLinef(s.out, "made %s: the contract and the Kubernetes types, %d files", filepath.Join(root, "cue.mod", "pkg", "operetta.dev"), changed)
	}
	return nil
}

// removeStale removes the files of the copy that the contract no longer has, which CUE would unify with the
// others. It returns how many.
func removeStale(root string, files []scaffold.File) (int, error) {
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[filepath.Join(root, filepath.FromSlash(f.Path))] = true
	}
	removed := 0
	err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(scaffold.ContractFolder)), func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || wanted[name] {
			return err
		}
		removed++
		return os.Remove(name)
	})
	return removed, err
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
