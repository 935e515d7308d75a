package source_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"operetta.dev/engine/source"
)

// folders writes an archive to a new folder, and returns it.
func folders(t *testing.T, archive string) string {
	t.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}

const overlaid = `
-- shop/shop.cue --
package shop

_mine: 1
#Spec: {}
-- one/labels.cue --
// Package one is about labels.
package one

components: [string]: objects: [string]: metadata: labels: a: "b"
-- two/labels.cue --
package somethingLonger

components: [string]: objects: [string]: metadata: labels: c: "d"
`

func TestAnOverlayIsPartOfEachPackage(t *testing.T) {
	t.Parallel()
	dir := folders(t, overlaid)
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	read := func(overlays ...string) *source.Snapshot {
		t.Helper()
		s, err := source.Loader{Overlays: overlays}.Folder(filepath.Join(dir, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	both := read(one, two)
	var shown []string
	for name := range both.Texts() {
		shown = append(shown, strings.TrimPrefix(both.Display(name), dir+"/"))
		if source.IsOverlay(name) == strings.HasSuffix(name, "shop.cue") {
			t.Errorf("%s: is it of an overlay: %v", name, source.IsOverlay(name))
		}
	}
	slices.Sort(shown)
	if diff := cmp.Diff([]string{"one/labels.cue", "shop.cue", "two/labels.cue"}, shown); diff != "" {
		t.Errorf("what messages show (-want +got):\n%s", diff)
	}
	if got := read(two, one); got.Digest() != both.Digest() {
		t.Error("the order makes another version of the package")
	}
	if got := read(one, one); got.Digest() != read(one).Digest() {
		t.Error("the same overlay twice makes another version of the package")
	}
	if read().Digest() == both.Digest() {
		t.Error("with and without overlays, the package has the same digest")
	}

	// An overlay that is no folder is the same.
	inMemory, err := source.NewOverlay("Overlay/one", map[string]string{"labels.cue": "// Package one is about labels.\npackage one\n\ncomponents: [string]: objects: [string]: metadata: labels: a: \"b\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := read().WithOverlays([]source.Overlay{inMemory})
	if err != nil || plain.Digest() != read(one).Digest() || plain.Name() != "shop" || plain.Origin() != read(one).Origin() {
		t.Errorf("%v: in memory it is another package: %+v", err, plain)
	}

	var sent bytes.Buffer
	if err := both.Send(&sent); err != nil {
		t.Fatal(err)
	}
	received, err := source.Receive(&sent)
	if err != nil {
		t.Fatal(err)
	}
	for name := range both.Texts() {
		if received.Display(name) != both.Display(name) {
			t.Errorf("another process shows %s as %s, and this one as %s", name, received.Display(name), both.Display(name))
		}
	}
}

func TestAChangeOfAnOverlayIsAChangeOfThePackage(t *testing.T) {
	t.Parallel()
	dir := folders(t, overlaid)
	one := filepath.Join(dir, "one")
	r := source.Loader{Overlays: []string{one}}.NewReader(filepath.Join(dir, "shop"))
	read := func() string {
		t.Helper()
		s, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	digests := map[string]bool{read(): true, read(): true}
	for _, edit := range []func() error{
		func() error {
			return os.WriteFile(filepath.Join(one, "labels.cue"), []byte("package one\n\nlet X = 1\n"), 0o600)
		},
		func() error {
			return os.WriteFile(filepath.Join(one, "more.cue"), []byte("package one\n\nlet Y = 1\n"), 0o600)
		},
		func() error { return os.Remove(filepath.Join(one, "labels.cue")) },
	} {
		if err := edit(); err != nil {
			t.Fatal(err)
		}
		digests[read()] = true
	}
	if len(digests) != 4 {
		t.Errorf("there are %d versions, want 4", len(digests))
	}
	if err := os.Remove(filepath.Join(one, "more.cue")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); !errors.Is(err, source.ErrNoFiles) {
		t.Errorf("an overlay that is gone: %v", err)
	}
}

func TestAnOverlayConstrainsWhatPackagesHaveAndAddsNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, text string
		// says is part of the error, or "".
		says string
		line int
	}{
		"each object":          {"it is what overlays are for", `components: [string]: objects: [string]: metadata: labels: a: "b"`, "", 0},
		"one object, if there": {"a question mark adds nothing", `components: web?: objects: {deployment?: spec: replicas: <3}`, "", 0},
		"with an alias":        {"the name of a component is of use", `components: [C=string]: objects: [string]: metadata: labels: c: C`, "", 0},
		"with a pattern":       {"so are some components", `components: {[=~"^web"]: objects: {}, // more` + "\n}", "", 0},
		"of its own":           {"names of one's own harm nobody", "import \"strings\"\n\nlet L = strings.ToLower(\"A\")\n_team: L\n#Team: string\ncr: _", "", 0},
		"hooks":                {"what they make are objects, too", `hooks?: {beforeDelete?: [string]: objects: [string]: metadata: labels: a: "b", [string]: [N=string]: objects: [string]: metadata: annotations: n: N}`, "", 0},
		"broken":               {"the compiler says where", "components: [string]: {", "", 0},

		"a condition of all":     {"it would delete what they have", `components: [string]: when: false`, "when belongs to the package", 3},
		"a policy":               {"it would take objects of others over", `components: [string]: policy: [string]: adopt: true`, "policy belongs to the package", 3},
		"a file that may be out": {"nobody would demand what it says", `@if(prod)`, "an attribute of a file may exclude it", 3},
		"a foreign import":       {"not each package has it", "import \"example.com/x\"\n\nlet X = x.y", "not each package has example.com/x", 3},
		"all hooks":              {"each package would have some", `hooks: [string]: [string]: {}`, "write hooks?", 3},
		"a phase":                {"each package with hooks would have it", `hooks?: beforeDelete: [string]: {}`, "would add a phase", 3},
		"a hook":                 {"each package with hooks would have it", `hooks?: [string]: mine: {}`, "would add a hook", 3},
		"an object of a hook":    {"each hook would have it", `hooks?: [string]: [string]: objects: mine: {}`, "would add an object", 3},
		"a pattern in one":       {"it holds for objects, too", `components: [string]: {[string]: x: {}}`, "every field of a component", 3},
		"a component":            {"each package would have it", `components: web: {}`, "would add a component", 3},
		"a required component":   {"packages without it would be broken", `components: web!: {}`, "would add a component", 3},
		"an object":              {"each component would have it", `components: [string]: {objects: extra: {}}`, "would add an object", 3},
		"a quoted object":        {"each component would have it", `components: [string]: {"objects": "extra": {}}`, "would add an object", 3},
		"components by a loop":   {"they are not known", "components: {for x in [\"a\"] {(x): {}}}", "could add a component", 3},
		"objects by a condition": {"they are not known", "components: [string]: {if true {objects: x: {}}}", "could add an object", 3},
		"an embedding":           {"it is not known what it has", "components: {_x}", "could add a component", 3},
		"a reference":            {"it is not known what it has", "\ncomponents: _x", "write the constraints of a component here", 4},
		"a reference to one":     {"it is not known what it has", "components: [string]: _x", "write what is in a component here", 3},
		"a reference to objects": {"it is not known what it has", "components: [string]: objects: _x", "write the constraints of an object here", 3},
		"a unification":          {"it is not known what it has", "components: {[string]: {}} & _x", "write the constraints of a component here", 3},
		"a computed label":       {"it may be any", `components: ("web"): {}`, "would add a component", 3},
		"a field of the contract": {
			"it is the author's", `kind: "Other"`, "kind belongs to the package", 3,
		},
		"the schema":           {"it is the author's", `#Spec: a: 1`, "the package has #Spec, too", 3},
		"a hidden field":       {"it would be unified with the author's", `_mine: 1`, "the package has _mine, too", 3},
		"the resource":         {"it is the user's", `cr: spec: a: 1`, "cr belongs to the package", 3},
		"the contract":         {"it is the author's", `{kind: "Other"}`, "only components", 3},
		"a pattern":            {"it holds for the contract", `[string]: _`, "every field of the contract", 3},
		"a condition":          {"it may be anything", `if true {kind: "Other"}`, "only components", 3},
		"an ellipsis":          {"it opens what is closed", `...`, "only components", 3},
		"no package clause":    {"stock cue asks for one, too", "", "package clause", 1},
		"another file's error": {"a file may begin with a comment", "/* */", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "package o\n\n" + row.text + "\n"
			if row.text == "" {
				text = "components: {}\n"
			}
			dir := folders(t, strings.Split(overlaid, "-- one")[0]+"-- o/o.cue --\n"+text)
			_, err := source.Loader{Overlays: []string{filepath.Join(dir, "o")}}.Folder(filepath.Join(dir, "shop"))
			if row.says == "" {
				if err != nil {
					t.Errorf("%s: %v", row.reason, err)
				}
				return
			}
			wrong, ok := errors.AsType[*source.OverlayError](err)
			if !ok || !strings.Contains(err.Error(), row.says) || wrong.Line != row.line || wrong.File != filepath.Join(dir, "o", "o.cue") {
				t.Errorf("%s: %v, want %q in line %d", row.reason, err, row.says, row.line)
			}
		})
	}
}

func TestOverlaysDoNotShareNames(t *testing.T) {
	t.Parallel()
	of := func(name string, files map[string]string) source.Overlay {
		t.Helper()
		o, err := source.NewOverlay(name, files)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	s, err := source.Loader{}.Files("shop", "", ".", map[string]string{"shop.cue": "package shop\n"})
	if err != nil {
		t.Fatal(err)
	}
	one := of("one", map[string]string{"a.cue": "package o\n\n_team: \"a\"\ncr: _\n", "b.cue": "package o\n\n_team: string\n"})
	two := of("two", map[string]string{"a.cue": "package o\n\ncr: _\n_team: \"b\"\n"})
	if _, err := s.WithOverlays([]source.Overlay{one, one}); err != nil {
		t.Errorf("files of one overlay share names, and it may come twice: %v", err)
	}
	if _, err := s.WithOverlays([]source.Overlay{one, two}); err == nil || !strings.Contains(err.Error(), "_team is declared by the overlay of one/b.cue, too") {
		t.Errorf("two overlays share a name: %v", err)
	}
}

func TestAnOverlayTakesNoNameOfAParentFolder(t *testing.T) {
	t.Parallel()
	dir := folders(t, `
-- cue.mod/module.cue --
module: "example.com/x"
language: version: "v0.17.0"
-- ops/common.cue --
package shop

_theirs: 1
-- ops/other.cue --
package other

_free: 1
-- ops/shop/shop.cue --
package shop

a: 1
-- takes/o.cue --
package o

_theirs: 2
-- free/o.cue --
package o

_free: 2
`)
	if _, err := (source.Loader{Overlays: []string{filepath.Join(dir, "takes")}}).Folder(filepath.Join(dir, "ops", "shop")); err == nil || !strings.Contains(err.Error(), "the package has _theirs, too") {
		t.Errorf("a name of a parent folder is taken over: %v", err)
	}
	if _, err := (source.Loader{Overlays: []string{filepath.Join(dir, "free")}}).Folder(filepath.Join(dir, "ops", "shop")); err != nil {
		t.Errorf("a name of another package is refused: %v", err)
	}
}

func TestAnOverlayThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	dir := folders(t, overlaid+"-- large/l.cue --\npackage l\n//"+strings.Repeat("x", 1<<20)+"\n-- empty/README.md --\n\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "empty", "p.cue")); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ reason, folder, says string }{
		"missing":  {"the flag is misspelled", "none", "none: no such file"},
		"no files": {"the flag is misspelled", ".", "no CUE files"},
		"a file":   {"an overlay is a folder", "one/labels.cue", "not a directory"},
		"large":    {"it would fill the memory", "large", "l.cue: it has more than"},
		"a link":   {"files elsewhere are nobody's overlay", "empty", "p.cue: it is a link that leads out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := source.Loader{Overlays: []string{filepath.Join(dir, row.folder)}}.Folder(filepath.Join(dir, "shop"))
			if wrong, ok := errors.AsType[*source.OverlayError](err); !ok || wrong.File != "" || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v, want %q", row.reason, err, row.says)
			}
		})
	}
}

// A file of a capsule has been in the hands of others.
func TestOverlaysAreOnlyMadeOfFilesThatOneCouldHave(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, file string
		made         bool
	}{
		"a file":            {"it is as it was", "demands/labels.cue", true},
		"another type":      {"no overlay reads it", "demands/labels.txt", false},
		"a folder above":    {"it is no name", "demands/..", false},
		"a very long name":  {"no disk has it", strings.Repeat("x", 10_000) + ".cue", false},
		"nothing but a dot": {"it is no name", ".", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := source.OverlaysOf([]source.OverlayFile{{File: row.file, Text: "package demands\n"}})
			if (err == nil && len(got) == 1) != row.made {
				t.Errorf("%s: %d overlays, error %v", row.reason, len(got), err)
			}
		})
	}
}
