package source

import (
	"os"
	"path/filepath"
	"slices"
)

// DefinitionFiles returns the files of the folders crds, each next to cue.mod, of the modules of some packages. They have the
// CustomResourceDefinitions of the kinds that the packages render or read and do not define. It errors if a folder cannot be read.
func DefinitionFiles(dirs []string) ([]string, error) {
	var seen, out []string
	for _, dir := range dirs {
		root, _, err := ModuleOf(dir)
		if err != nil {
			return nil, err
		}
		at := filepath.Join(root, "crds")
		if info, err := os.Stat(at); err != nil || !info.IsDir() || slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		files, err := ManifestFiles(at)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// ManifestFiles returns the files in a folder that have manifests, in the order of their names; a file stands for itself. It errors if the
// folder cannot be read.
func ManifestFiles(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
