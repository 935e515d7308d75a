// Package golden runs tests whose input and expected output stand together in one
// txtar file: the world in some of its files, what comes of it in others.
//
//	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
//		c.Want("rollout", evaluate(c.FS("package")))
//	})
//
// The name of a file is a sentence that says what is true, and the text above its
// first file says why that matters. `go test -update` writes what came out into
// the archive; reviewing that is up to the one who runs it.
package golden

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what came out into the golden files")

// A Case is one golden file, and the test of it.
type Case struct {
	*testing.T

	// Reason is the text above the first file: why the case is there.
	Reason string

	path    string
	archive *txtar.Archive
	wants   int
	changed bool
}

// Run runs f, as a parallel subtest, for each file that matches the pattern. It
// fails when none does, when a file gives no reason, and when f wants nothing.
func Run(t *testing.T, pattern string, f func(c *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files at %s (%v)", pattern, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := &Case{T: t, path: path, archive: archive, Reason: strings.TrimSpace(string(archive.Comment))}
			if c.Reason == "" {
				t.Errorf("%s does not say why the case is there", path)
			}
			f(c)
			c.finish()
		})
	}
}

// File returns the content of a file of the case, or nil when there is none.
func (c *Case) File(name string) []byte {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// FS returns the files of the case that are below a folder, by their path there.
func (c *Case) FS(folder string) fs.FS {
	out := fstest.MapFS{}
	for _, f := range c.archive.Files {
		if name, ok := strings.CutPrefix(f.Name, folder+"/"); ok {
			out[name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return out
}

// Want compares what came out with the file of that name, or, with -update, puts
// it there.
func (c *Case) Want(name, got string) {
	c.Helper()
	c.wants++
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	if *update {
		c.write(name, []byte(got))
		return
	}
	if diff := cmp.Diff(string(c.File(name)), got); diff != "" {
		c.Errorf("%s: %s\n%s (-want +got):\n%s", c.path, c.Reason, name, diff)
	}
}

func (c *Case) write(name string, data []byte) {
	for i, f := range c.archive.Files {
		if f.Name == name {
			c.changed = c.changed || !bytes.Equal(f.Data, data)
			c.archive.Files[i].Data = data
			return
		}
	}
	c.changed = true
	c.archive.Files = append(c.archive.Files, txtar.File{Name: name, Data: data})
}

func (c *Case) finish() {
	if c.wants == 0 {
		c.Errorf("%s: nothing was compared", c.path)
	}
	if !c.changed || c.Failed() {
		return
	}
	if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
		c.Error(err)
	}
}
