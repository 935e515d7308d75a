//go:build unix

package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/source"
	"operetta.dev/test/machine"
)

const oneFile = "-- shop/x.cue --\npackage x\n"

func link(to, name string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func write(name, text string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), text)
	}
}

func pipe(name string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func many(n int, name, text string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		for i := range n {
			writeFile(t, filepath.Join(dir, fmt.Sprintf(name, i)), text)
		}
	}
}

// hostile is what an attacker may put into the folder of a package, which is shop.
var hostile = map[string]struct {
	reason string
	put    func(testing.TB, string)
	want   string // "" where it can be read
}{
	"a pipe":              {"opening one waits for a writer", pipe("shop/y.cue"), "shop/y.cue: it is a named pipe, and only regular files are read"},
	"a link to a pipe":    {"it is followed first", func(t testing.TB, dir string) { t.Helper(); pipe("p")(t, dir); link("../p", "shop/y.cue")(t, dir) }, "it is a named pipe, and only"},
	"a link to a device":  {"it never ends", link("/dev/zero", "shop/y.cue"), "shop/y.cue: it is a link that leads out of the folder of the module, or to nothing"},
	"a link to elsewhere": {"what is not the package's is none of it", link("/etc/passwd", "shop/y.cue"), "shop/y.cue: it is a link that leads out of the folder of the module, or to nothing"},
	"a link to nothing":   {"nobody knows what it would be", link("gone", "shop/y.cue"), "shop/y.cue: it is a link that leads out of the folder of the module, or to nothing"},
	"a link to itself":    {"a circle", link("y.cue", "shop/y.cue"), "shop/y.cue: it is a link that leads out of the folder of the module, or to nothing"},
	"a link to a folder":  {"it is no file", link("../shop", "shop/y.cue"), "shop/y.cue: it is a folder, and only regular files are read"},
	"a pipe as module": {"it is read like the package", func(t testing.TB, dir string) {
		t.Helper()
		write("cue.mod/x", "")(t, dir)
		pipe("cue.mod/module.cue")(t, dir)
	}, "cue.mod/module.cue: it is a named pipe"},
	"a large module": {"CUE evaluates it", write("cue.mod/module.cue", strings.Repeat("// x\n", 20_000)), "cue.mod/module.cue: it has more than 16384 bytes"},
	"a large file":   {"it fills the memory", write("shop/y.cue", strings.Repeat("x", 1<<20+1)), "shop/y.cue: it has more than 1048576 bytes"},
	"a sparse file": {"it takes no room where it is", func(t testing.TB, dir string) {
		t.Helper()
		write("shop/y.cue", "")(t, dir)
		_ = os.Truncate(filepath.Join(dir, "shop/y.cue"), 1<<40)
	}, "shop/y.cue: it has more than"},
	"large files":      {"each is small enough", many(9, "shop/y%d.cue", "package x\n//"+strings.Repeat("x", 1<<20-100)), "shop/y8.cue: with it, the files of the package have more than 8388608 bytes"},
	"many files":       {"each takes a request", many(1000, "shop/y%04d.cue", "package x\n"), "with it, the package has more than 1000 files"},
	"many other files": {"they take time", many(10_001, "shop/y%d", ""), "shop: the folder has more than 10000 entries"},
	"many imports":     {"each is looked for", write("shop/y.cue", "package x\n\nimport (\n"+strings.Repeat("\"a\"\n", 10_001)+")\n"), "shop/y.cue: with it, the package has more than 10000 imports"},
	"no text":          {"CUE is UTF-8", write("shop/y.cue", "package x\n\n//\xff\n"), "shop/y.cue: it is not UTF-8 text"},
	"a circle of folders": {"each name of it is another one", func(t testing.TB, dir string) {
		t.Helper()
		write("cue.mod/module.cue", "module: \"a.b/c\"\nlanguage: version: \"v0.17.0\"\n")(t, dir)
		link(".", "shop/l")(t, dir)
		write("shop/y.cue", "package x\n\nimport \"a.b/c/shop/l/l/l/l\"\n")(t, dir)
	}, ""},
	"a link within the module": {"a mounted ConfigMap has them", func(t testing.TB, dir string) {
		t.Helper()
		write("shop/..1/y.cue", "package x\n")(t, dir)
		link("..1", "shop/..data")(t, dir)
		link("..data/y.cue", "shop/y.cue")(t, dir)
	}, ""},
}

func TestHostileFolderIsAnErrorThatNamesTheFile(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := onDisk(t, oneFile)
			c.put(t, dir)
			if _, err := os.Lstat(filepath.Join(dir, "cue.mod")); err != nil {
				write("cue.mod/module.cue", "module: \"a.b/c\"\nlanguage: version: \"v0.17.0\"\n")(t, dir)
			}
			done := make(chan error, 1)
			go func() { _, err := source.Loader{}.Folder(filepath.Join(dir, "shop")); done <- err }()
			select {
			case err := <-done:
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: the error is %v, want %q", c.reason, err, c.want)
				}
			case <-time.After(machine.Patience):
				t.Fatalf("%s: reading it does not end", c.reason)
			}
			// The search for packages comes first.
			if _, err := source.Expand([]string{dir + "/..."}); err == nil {
				t.Error("there is a package that none of the files embeds")
			}
		})
	}
}

// CUE's parser takes three kilobytes of stack for each field, and a process that runs out of
// stack ends.
func TestSearchForPackagesSurvivesDeepFiles(t *testing.T) {
	t.Parallel()
	const begin = "package x\n\nimport \"operetta.dev/schemas/operator\"\n\n"
	dir := onDisk(t, "-- deep/x.cue --\n"+begin+strings.Repeat("a:", 450_000)+"1\n-- right/x.cue --\n"+begin+"a: \"\\(\"b\\(1)}\")\\({c: [1]})\"\noperator.#Controller\n-- within/x.cue --\n"+begin+"a: {\n\toperator.#Controller\n}\n")
	got, err := source.Expand([]string{dir + "/..."})
	if want := filepath.Join(dir, "right"); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
}

func TestDeepModuleIsAnError(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	dir := onDisk(t, oneFile+"-- cue.mod/module.cue --\n"+strings.Repeat("a:", 8_000)+"1\n")
	if _, err := (source.Loader{}).Folder(filepath.Join(dir, "shop")); err == nil {
		t.Error("that is no module")
	}
}

// A file that is replaced by a pipe, a device or a larger one between two system calls is
// not waited for either.
func TestReplacedFileDoesNotHang(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, oneFile)
	pipe("p")(t, dir)
	write("file", "package x\n")(t, dir)
	stop := time.Now().Add(time.Second)
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		for time.Now().Before(stop) {
			for _, from := range []string{"p", "file"} {
				next := filepath.Join(dir, "next")
				_ = os.Link(filepath.Join(dir, from), next)
				_ = os.Rename(next, filepath.Join(dir, "shop/x.cue"))
			}
		}
	}()
	for time.Now().Before(stop) {
		done := make(chan struct{})
		go func() { _, _ = source.Loader{}.Folder(filepath.Join(dir, "shop")); close(done) }()
		select {
		case <-done:
		case <-time.After(machine.Patience):
			t.Fatal("reading it does not end")
		}
	}
	<-swapped
}

func TestUnreadableFileIsAnError(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := onDisk(t, oneFile)
	if err := os.Chmod(filepath.Join(dir, "shop/x.cue"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := (source.Loader{}).Folder(filepath.Join(dir, "shop")); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
}

func TestReaderSeesEveryChange(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, oneFile)
	file := filepath.Join(dir, "shop/x.cue")
	old := time.Now().Add(-time.Hour)
	settle := func() {
		t.Helper()
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(name, old, old))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	settle()
	r := source.Loader{}.NewReader(filepath.Join(dir, "shop"))
	read := func() *source.Snapshot {
		t.Helper()
		s, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := read()
	if read() != first {
		t.Error("what did not change is read again")
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"another content", func() { writeFile(t, file, "package x\n\na: 1\n") }},
		{"a second one at once, of the same size", func() { writeFile(t, file, "package x\n\na: 2\n") }},
		{"another file", func() { writeFile(t, filepath.Join(dir, "shop/y.cue"), "package x\n") }},
		{"a file less", func() { _ = os.Remove(filepath.Join(dir, "shop/y.cue")) }},
		{"another file in its place", func() {
			writeFile(t, filepath.Join(dir, "next"), "package x\n\na: 3\n")
			_ = os.Rename(filepath.Join(dir, "next"), file)
			settle()
		}},
		{"a module above", func() { write("cue.mod/module.cue", "module: \"a.b/c\"\nlanguage: version: \"v0.17.0\"\n")(t, dir) }},
		{"an import", func() { writeFile(t, file, "package x\n\nimport \"d.e/f/g\"\n\na: g.a\n"); settle() }},
		{"a vendored package", func() { write("cue.mod/pkg/d.e/f/g/g.cue", "package g\n\na: 1\n")(t, dir) }},
	} {
		before := read()
		c.do()
		if after := read(); after.Digest() == before.Digest() {
			t.Errorf("%s is not seen", c.what)
		}
	}
}

func TestReaderSeesThatAnErrorIsOver(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, oneFile)
	pipe("shop/y.cue")(t, dir)
	r := source.Loader{}.NewReader(filepath.Join(dir, "shop"))
	if _, err := r.Read(); err == nil {
		t.Fatal("a pipe was read")
	}
	if err := os.Remove(filepath.Join(dir, "shop/y.cue")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); err != nil {
		t.Error(err)
	}
}

func TestSnapshotThatIsSentIsTheSame(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Folder(filepath.Join(onDisk(t, keptModule), "cue/shop"))
	if err != nil {
		t.Fatal(err)
	}
	var pipe bytes.Buffer
	if err := s.Send(&pipe); err != nil {
		t.Fatal(err)
	}
	pipe.WriteString("more")
	got, err := source.Receive(&pipe)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, s.FS()), contents(t, got.FS())); diff != "" || got.Digest() != s.Digest() || got.Name() != s.Name() || pipe.String() != "more" {
		t.Errorf("%s %s, rest %q (-want +got):\n%s", got.Name(), got.Digest(), pipe.String(), diff)
	}
}

// FuzzReceive takes whatever a process may send.
func FuzzReceive(f *testing.F) {
	s, err := source.Loader{}.Module("shop", "", "cue/shop", tree(f, keptModule))
	if err != nil {
		f.Fatal(err)
	}
	var right bytes.Buffer
	if err := s.Send(&right); err != nil {
		f.Fatal(err)
	}
	f.Add(right.Bytes())
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x02{}"))
	const names = `{"format":1,"dir":"..","name":"x","files":{"../x.cue":"package x","/x.cue":"","":"","a/../x.cue":""}}`
	f.Add(append([]byte{0, 0, 0, 0, 0, 0, 0, byte(len(names))}, names...))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := source.Receive(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := got.Send(&again); err != nil {
			t.Fatal(err)
		}
		same, err := source.Receive(&again)
		if err != nil || same.Digest() != got.Digest() {
			t.Errorf("it is not what is sent on: %v", err)
		}
	})
}

// FuzzFiles takes whatever may be in the files of a package.
func FuzzFiles(f *testing.F) {
	f.Add("module: \"a.b/c\"\nlanguage: version: \"v0.17.0\"\n", "package x\n\nimport \"a.b/c/y\"\n", "package y\n")
	f.Add("", "package x\n\nimport (\n\t\"..\"\n\t\"a.b/c/../../etc\"\n\t\"/\"\n\t\"@\"\n\t\":\"\n)\n", "")
	f.Add("module: 1", "import operator \"operetta.dev/schemas/operator\"\na: \"\\(\"b\\(1)}\")\"\noperator.#Controller", "\xff")
	f.Fuzz(func(t *testing.T, module, x, y string) {
		files := fstest.MapFS{"x/x.cue": {Data: []byte(x)}, "y/y.cue": {Data: []byte(y)}}
		if module != "" {
			files["cue.mod/module.cue"] = &fstest.MapFile{Data: []byte(module)}
		}
		s, err := source.Loader{}.Module("x", "", "x", files)
		if err != nil {
			return
		}
		if s.Digest() == "" || len(s.Files("x")) == 0 {
			t.Error("a package without files")
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
		if _, err := (source.Loader{}).Folder(filepath.Join(dir, "x")); err != nil {
			t.Errorf("it is another one on disk: %v", err)
		}
		_, _ = source.Expand([]string{dir + "/..."})
	})
}
