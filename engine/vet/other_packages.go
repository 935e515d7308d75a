package vet

import (
	"io/fs"
	"path"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// otherPackages warns of files in the folder of the package that are of another one, or say nothing of that: nothing in them is part of
// the package.
func otherPackages(v *view) fault.Faults {
	s := v.Snapshot()
	var out fault.Faults
	for _, name := range s.Files(s.Dir()) {
		if path.Clean(path.Dir(name)) != path.Clean(s.Dir()) || source.IsOverlay(name) || strings.HasSuffix(name, source.TestSuffix) {
			continue
		}
		of, leftOut := packageOf(s.FS(), name)
		if leftOut || of == v.Name() {
			continue
		}
		f := fault.Fault{
			Position: fault.Position{File: s.Display(name), Line: 1},
			Message:  "this file is of package " + of + ", so that nothing in it is part of package " + v.Name(),
			Hint:     "write package " + v.Name() + " at its top, or move it to a folder of its own",
		}
		if of == "" {
			f.Message = "this file does not say which package it is of, so that nothing in it is part of package " + v.Name()
			f.Hint = "write package " + v.Name() + " at its top"
		}
		out = append(out, f)
	}
	return out
}

// packageOf returns the name of the package of a file, and whether it is left out on purpose: an attribute decides that, or it is
// empty.
func packageOf(files fs.FS, name string) (of string, leftOut bool) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return "", true
	}
	f, err := parser.ParseFile(name, data)
	if err != nil || len(f.Decls) == 0 {
		return "", true // it would not have been loaded, or has nothing that could be missed
	}
	for _, d := range f.Decls {
		if _, is := d.(*ast.Attribute); is {
			return "", true
		}
	}
	return f.PackageName(), false
}
