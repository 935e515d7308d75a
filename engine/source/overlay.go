package source

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// An OverlayError is the error of a folder whose files are to be unified with packages, and cannot be.
type OverlayError struct {
	// File and Line are the place, as messages show it; File is "" if what is wrong is the folder.
	File string
	Line int
	// Err says why.
	Err error
}

// Error returns what is wrong, without the place.
func (e *OverlayError) Error() string { return "overlay: " + e.Err.Error() }

// Unwrap returns why.
func (e *OverlayError) Unwrap() error { return e.Err }

// sessionFields are the fields of the contract that an overlay may declare, to refer to them.
var sessionFields = []string{"cr", "live", "inputs", "config"}

// An Overlay is a set of CUE files that are unified with packages: what an administrator demands of all of
// them. It is immutable.
type Overlay struct{ files []overlayFile }

// An overlayFile is one file of an overlay, as its author wrote it.
type overlayFile struct {
	// shown is its path in messages, base its name.
	shown, base string
	data        []byte
}

// NewOverlay returns an overlay of files by their names. Messages show them below a name. It errors with an
// OverlayError when a name is not that of a CUE file.
func NewOverlay(name string, files map[string]string) (Overlay, error) {
	fsys := fstest.MapFS{}
	for file, text := range files {
		if !fs.ValidPath(file) || path.Base(file) != file || len(file) > maxFileName {
			return Overlay{}, &OverlayError{Err: fmt.Errorf("%s: %.40q is not the name of a file", name, file)}
		}
		if len(text) > maxFileSize {
			return Overlay{}, &OverlayError{Err: fmt.Errorf("%s: %w", name, tooLargeError(file, maxFileSize))}
		}
		fsys[file] = &fstest.MapFile{Data: []byte(text)}
	}
	return overlayIn(fsys, func(file string) string { return path.Join(name, file) })
}

// overlayIn returns the overlay in the root of a file system.
func overlayIn(fsys fs.FS, shown func(string) string) (Overlay, error) {
	wrong := func(err error) (Overlay, error) {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err // it says the folder again
		}
		return Overlay{}, &OverlayError{Err: fmt.Errorf("%s: %w", shown(""), err)}
	}
	names, err := cueFiles(fsys, ".", "")
	if err != nil {
		return wrong(err)
	}
	if len(names) == 0 {
		return wrong(ErrNoFiles)
	}
	var out Overlay
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return wrong(withFileName(name, err))
		}
		out.files = append(out.files, overlayFile{shown: shown(name), base: name, data: data})
	}
	return out, nil
}

// readOverlays returns the overlays in folders, and what was read to find them.
func readOverlays(dirs []string) ([]Overlay, []reading, error) {
	var overlays []Overlay
	var readings []reading
	for _, dir := range dirs {
		read := beginReading(dir)
		d, err := openDisk(dir)
		if err != nil {
			if p, ok := errors.AsType[*fs.PathError](err); ok {
				err = p.Err
			}
			return nil, nil, &OverlayError{Err: fmt.Errorf("%s: %w", shownOverlay(dir, ""), err)}
		}
		o, err := overlayIn(d, func(name string) string { return shownOverlay(dir, name) })
		_ = d.root.Close() // it was only read
		if err != nil {
			return nil, nil, err
		}
		read.stats = d.stats
		overlays, readings = append(overlays, o), append(readings, read)
	}
	return overlays, readings, nil
}

// WithOverlays returns the snapshot of the same package with overlays. Neither their order nor where they are from
// makes another digest. It errors with an OverlayError when one does more than to constrain what packages have.
func (s *Snapshot) WithOverlays(overlays []Overlay) (*Snapshot, error) {
	if len(overlays) == 0 {
		return s, nil
	}
	out, err := Loader{}.snapshot(s.authored, s.dir, s.tested, overlays)
	if err != nil {
		return nil, err
	}
	out.name, out.origin, out.prefix = s.name, s.origin, s.prefix
	return out, nil
}

// An OverlayFile is a file of an overlay that a snapshot has. Overlays of such files make the same version of the
// package elsewhere.
type OverlayFile struct {
	// File is its path as messages show it.
	File string `json:"file"`
	Text string `json:"text"`
}

// OverlayFiles returns the files of the overlays of a snapshot, in the order of their paths.
func (s *Snapshot) OverlayFiles() []OverlayFile {
	var out []OverlayFile
	for name, shown := range s.shown {
		out = append(out, OverlayFile{shown, string(s.authored[name].Data)})
	}
	slices.SortFunc(out, func(a, b OverlayFile) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Text, b.Text))
	})
	return out
}

// OverlaysOf returns the overlays that some files are of: those of one folder are one. It errors with an OverlayError if
// a file is too large, or has a name that no file of an overlay has.
func OverlaysOf(files []OverlayFile) ([]Overlay, error) {
	in := map[string]Overlay{}
	for _, f := range files {
		if len(f.Text) > maxFileSize {
			return nil, &OverlayError{File: f.File, Err: tooLargeError(f.File, maxFileSize)}
		}
		if base := path.Base(f.File); !fs.ValidPath(base) || len(base) > maxFileName || !strings.HasSuffix(base, ".cue") {
			return nil, &OverlayError{Err: fmt.Errorf("%.60q is no name of a CUE file", base)}
		}
		o := in[path.Dir(f.File)]
		o.files = append(o.files, overlayFile{shown: f.File, base: path.Base(f.File), data: []byte(f.Text)})
		in[path.Dir(f.File)] = o
	}
	var out []Overlay
	for _, dir := range slices.Sorted(maps.Keys(in)) {
		out = append(out, in[dir])
	}
	return out, nil
}

// ShowingOverlays returns the same version of the package, whose messages show the files of overlays that are among some
// as these say.
func (s *Snapshot) ShowingOverlays(files []OverlayFile) *Snapshot {
	out := *s
	out.shown = maps.Clone(s.shown)
	for _, f := range files {
		at := nameOfOverlay(s.dir, path.Base(f.File), []byte(f.Text))
		if _, has := out.shown[at]; has {
			out.shown[at] = f.File
		}
	}
	return &out
}

// nameOfOverlay returns the path of a file of an overlay in a snapshot.
func nameOfOverlay(dir, base string, data []byte) string {
	sum := sha256.Sum256(append([]byte(base+"\n"), data...))
	return path.Join(dir, "overlay."+hex.EncodeToString(sum[:6])+"."+base)
}

// shownOverlay returns how messages show a file of an overlay: from the working directory, if it is below it.
func shownOverlay(dir, name string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		if prefix := displayPrefix(abs); prefix != "" {
			return path.Join(prefix, name)
		}
	}
	return path.Join(filepath.ToSlash(dir), name)
}

// overlayName matches the name of a file that an overlay has added to a package.
var overlayName = regexp.MustCompile(`^overlay\.[0-9a-f]{12}\.`)

// IsOverlay reports whether a file of a snapshot is one of an overlay. Such a file belongs to the package of
// the snapshot, whatever its package clause says.
func IsOverlay(name string) bool { return overlayName.MatchString(path.Base(name)) }

// addOverlays adds the files of overlays to the package in dir. Their names there come from what they say, so
// that neither the order of the overlays nor the folders they are in make another version of the package. It returns
// how messages show them.
func (c *collector) addOverlays(dir string, overlays []Overlay) (map[string]string, error) {
	if len(overlays) == 0 {
		return nil, nil
	}
	declared, err := c.declarations(dir)
	if err != nil {
		return nil, err
	}
	shown, taken := map[string]string{}, map[string]overlayFile{}
	for _, o := range overlays {
		own := map[string]bool{}
		for _, f := range o.files {
			if err := checkOverlay(f, declared); err != nil {
				return nil, err
			}
			at := nameOfOverlay(dir, f.base, f.data)
			if shown[at] != "" {
				continue // the same overlay twice
			}
			shown[at] = f.shown
			if err := takeNames(f, own, taken); err != nil {
				return nil, err
			}
			if err := c.addFile(at, f.data); err != nil {
				return nil, &OverlayError{Err: fmt.Errorf("%s: %w", f.shown, err)}
			}
		}
	}
	return shown, nil
}

// takeNames errors if a file declares a name that another overlay has. own are the names of its own overlay.
func takeNames(f overlayFile, own map[string]bool, taken map[string]overlayFile) error {
	names := map[string]bool{}
	declare(f.shown, f.data, names)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#") {
			continue // it is a field of the contract
		}
		if by, ok := taken[name]; ok && !own[name] {
			return &OverlayError{File: f.shown, Line: 1, Err: fmt.Errorf("%s is declared by the overlay of %s, too; give it another name, or use let", name, by.shown)}
		}
		own[name], taken[name] = true, f
	}
	return nil
}

// declarations returns the names that the files of a folder and of its parent folders declare at the root.
func (c *collector) declarations(dir string) (map[string]bool, error) {
	declared := map[string]bool{}
	for at := dir; ; at = path.Dir(at) {
		found, err := c.readFolder(at)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if c.files[f.name] != nil {
				declare(f.name, f.data, declared)
			}
		}
		if at == "." {
			return declared, nil
		}
	}
}

// declare adds the names that a file declares at its root. The compiler says what is wrong with the file.
func declare(name string, data []byte, declared map[string]bool) {
	whole, _ := parser.ParseFile(name, data)
	if whole == nil {
		return
	}
	for _, d := range whole.Decls {
		if field, ok := d.(*ast.Field); ok {
			text, _, _ := ast.LabelName(field.Label)
			declared[text] = true
		}
	}
}

// checkOverlay errors with an OverlayError if a file of an overlay does more than to constrain objects that packages
// have: whatever else it adds, each package would have, or it would change what the package's author has called
// something.
func checkOverlay(f overlayFile, declared map[string]bool) error {
	wrong := func(at ast.Node, format string, args ...any) error {
		return &OverlayError{File: f.shown, Line: at.Pos().Line(), Err: fmt.Errorf(format, args...)}
	}
	whole, err := parser.ParseFile(f.shown, f.data)
	if err != nil {
		return nil // the compiler says what is wrong with it
	}
	if whole.PackageName() == "" {
		return &OverlayError{File: f.shown, Line: 1, Err: errors.New("the file needs a package clause, such as package overlay")}
	}
	for spec := range whole.ImportSpecs() {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if domain, _, _ := strings.Cut(imported, "/"); strings.Contains(domain, ".") && !strings.HasPrefix(imported, contractPrefix) {
			return wrong(spec, "not each package has %s: only packages of CUE and of %s can be imported", imported, strings.TrimSuffix(contractPrefix, "/"))
		}
	}
	for _, d := range whole.Decls {
		switch d := d.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup, *ast.LetClause:
		case *ast.Attribute:
			return wrong(d, "an attribute of a file may exclude it, and then nobody would demand what it says")
		case *ast.Field:
			if err := checkRoot(d, declared, wrong); err != nil {
				return err
			}
		default:
			return wrong(d, "only components, hooks?, let clauses, and hidden fields and definitions of its own may be at the root")
		}
	}
	return nil
}

// checkRoot errors if an overlay must not have a field at its root.
func checkRoot(f *ast.Field, declared map[string]bool, wrong func(ast.Node, string, ...any) error) error {
	name, _, err := ast.LabelName(f.Label)
	bare, _ := f.Value.(*ast.Ident)
	switch {
	case err != nil:
		return wrong(f, "a pattern at the root would constrain every field of the contract")
	case name == "components":
		return checkExisting(f.Value, wrong, component, object)
	case name == "hooks":
		if f.Constraint != token.OPTION {
			return wrong(f, "this would add hooks to each package: write hooks?")
		}
		return checkExisting(f.Value, wrong, phase, hook, object)
	case slices.Contains(sessionFields, name):
		if bare == nil || bare.Name != "_" {
			return wrong(f, "%s belongs to the package: write %s: _ to refer to it", name, name)
		}
		return nil
	case !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#"):
		return wrong(f, "%s belongs to the package; an overlay constrains components and hooks", name)
	case declared[name]:
		return wrong(f, "the package has %s, too; give it another name", name)
	}
	return nil
}

// A level is what the fields of a struct are that an overlay constrains, with its article.
type level string

const (
	component level = "a component"
	phase     level = "a phase"
	hook      level = "a hook"
	object    level = "an object"
)

// checkExisting errors if a struct adds fields to what it constrains, instead of constraining what is there. What is
// in the fields is checked as the levels below say; objects are only one field of a component or hook.
func checkExisting(value ast.Expr, wrong func(ast.Node, string, ...any) error, what level, below ...level) error {
	s, ok := value.(*ast.StructLit)
	if !ok {
		return wrong(value, "write the constraints of %s here, in braces or behind a colon", what)
	}
	for _, d := range s.Elts {
		f, err := fieldIn(d, what, wrong)
		switch {
		case err != nil:
			return err
		case f == nil:
			continue
		}
		label := ast.Node(f.Label)
		if alias, ok := label.(*ast.Alias); ok {
			label = alias.Expr
		}
		if _, pattern := label.(*ast.ListLit); !pattern && f.Constraint != token.OPTION {
			return wrong(f, "this would add %s where there is none: write [string] for all, or a question mark behind the name", what)
		}
		switch len(below) {
		case 0:
		case 1:
			err = checkObjects(f.Value, what, wrong)
		default:
			err = checkExisting(f.Value, wrong, below[0], below[1:]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkObjects errors if the constraints of a component or hook add objects.
func checkObjects(value ast.Expr, of level, wrong func(ast.Node, string, ...any) error) error {
	s, ok := value.(*ast.StructLit)
	if !ok {
		return wrong(value, "write what is in %s here, in braces or behind a colon", of)
	}
	for _, d := range s.Elts {
		f, err := fieldIn(d, object, wrong)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		name, _, err := ast.LabelName(f.Label)
		if err != nil {
			return wrong(f, "a pattern here would constrain every field of %s", of)
		}
		if name != "objects" {
			return wrong(f, "%s belongs to the package: an overlay constrains the objects of %s", name, of)
		}
		if err := checkExisting(f.Value, wrong, object); err != nil {
			return err
		}
	}
	return nil
}

// fieldIn returns the field that a declaration is, or nil if it is a comment. It errors if it could add something.
func fieldIn(d ast.Decl, what level, wrong func(ast.Node, string, ...any) error) (*ast.Field, error) {
	switch d := d.(type) {
	case *ast.Field:
		return d, nil
	case *ast.CommentGroup, *ast.Attribute:
		return nil, nil
	}
	return nil, wrong(d, "only fields may be here: everything else could add %s where there is none", what)
}
