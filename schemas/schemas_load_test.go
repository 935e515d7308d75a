package schemas_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
)

// build evaluates a package made of one source text, against one form of the schemas.
func build(t testing.TB, schemas fs.FS, text string) cue.Value {
	t.Helper()
	tree := overlay(t, schemas)
	add(tree, "author/author.cue", []byte(text))
	return loadPackage(t, tree, "./author")
}

// loadPackage loads one package of the tree.
func loadPackage(t testing.TB, tree fs.FS, path string) cue.Value {
	t.Helper()
	inst := load.Instances([]string{path}, &load.Config{FS: tree, Dir: "/"})[0]
	if inst.Err != nil {
		t.Fatalf("loading %s: %v", path, inst.Err)
	}
	return cuecontext.New().BuildInstance(inst)
}

// add puts a file into a tree.
func add(tree fstest.MapFS, name string, data []byte) {
	tree[name] = &fstest.MapFile{Data: data}
}

// overlay copies the schemas into a CUE module that a test can add files to.
func overlay(t testing.TB, schemas fs.FS) fstest.MapFS {
	t.Helper()
	module, err := os.ReadFile("../cue.mod/module.cue")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	add(tree, "cue.mod/module.cue", module)
	err = fs.WalkDir(schemas, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(schemas, name)
		add(tree, name, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
