package source

import (
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/mod/modfile"
)

// Rooted returns the author's files under the names that they have if the folder of the package is the root of its module, as it is in a
// Package of the cluster. The module then has the import path of that folder. It errors with a LimitError if the package needs a file of its
// module that is in no folder below its own.
func (s *Snapshot) Rooted() (map[string]string, error) {
	if s.dir == "." {
		return s.Texts(), nil
	}
	out := map[string]string{}
	for name, f := range s.authored {
		below, is := strings.CutPrefix(name, s.dir+"/")
		switch {
		case is:
			out[below] = string(f.Data)
		case name == moduleFile:
			text, err := moved(f.Data, s.dir)
			if err != nil {
				return nil, fmt.Errorf("package %s: %w", s.name, err)
			}
			out[name] = text
		case strings.HasPrefix(name, path.Dir(moduleFile)+"/"):
			out[name] = string(f.Data)
		default:
			return nil, &LimitError{s.Display(name), "the package needs it, and it is not below the folder of the package"}
		}
	}
	return out, nil
}

// moved returns the declaration of a module that begins in a folder of it.
func moved(declaration []byte, dir string) (string, error) {
	f, err := modfile.ParseNonStrict(declaration, moduleFile)
	if err != nil {
		return "", fmt.Errorf("reading the module: %w", err)
	}
	at := ast.ParseImportPath(f.QualifiedModule())
	f.Module = path.Join(at.Path, dir) + "@" + at.Version
	text, err := modfile.Format(f)
	if err != nil {
		return "", fmt.Errorf("writing the module: %w", err)
	}
	return string(text), nil
}
