package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"text/template"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/format"
	modpath "cuelang.org/go/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
	"operetta.dev/schemas"
)

//go:embed files
var files embed.FS

// A File is a file to write, with a path in slashes below the root of the module.
type File struct {
	Path    string
	Content []byte
}

// A Package is a new operator package.
type Package struct {
	// Name is the name of the package and of its folder.
	Name string
	// Group and Kind are those of its custom resource.
	Group, Kind string
}

var (
	packageName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	kindName    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// KindOf returns the kind that a package of a name has unless somebody names another: the name with a
// capital letter.
func KindOf(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// Check errors if a name, a kind or a group is not one.
func (p Package) Check() error {
	if !packageName.MatchString(p.Name) {
		return fmt.Errorf("%q cannot name a package: write a letter, then letters and digits, all in lower case", p.Name)
	}
	if !kindName.MatchString(p.Kind) || len(p.Kind) > validation.DNS1035LabelMaxLength {
		return fmt.Errorf("%q cannot be a kind: write a capital letter, then letters and digits", p.Kind)
	}
	if all := validation.IsDNS1123Subdomain(p.Group); len(all) > 0 || !strings.Contains(p.Group, ".") {
		return fmt.Errorf("%q cannot be an API group: write a domain, such as example.com", p.Group)
	}
	return nil
}

// Files returns the package, its tests and a sample, in a folder of its name. It errors like Check.
func (p Package) Files() ([]File, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var out []File
	for _, f := range [][2]string{{"package.cue.tmpl", p.Name + ".cue"}, {"test.cue.tmpl", p.Name + "_test.cue"}, {"sample.yaml.tmpl", "sample.yaml"}} {
		content, err := fill(f[0], p)
		if err != nil {
			return nil, err
		}
		out = append(out, File{path.Join(p.Name, f[1]), content})
	}
	return out, nil
}

// A Module is the CUE module that a package is in.
type Module struct {
	// Path is the path under which its packages import each other, such as example.com/operators.
	Path string
}

// vendored is the folder in which the cue command of any version finds packages that no registry has, and
// ContractFolder the part of it that Contract fills.
const (
	vendored       = "cue.mod/pkg/operetta.dev"
	ContractFolder = vendored + "/schemas"
)

// Files returns the file of the module. It errors if the path cannot name one.
func (m Module) Files() ([]File, error) {
	module := m.Path
	if !strings.Contains(path.Base(module), "@") {
		module += "@v0"
	}
	if err := modpath.CheckPath(module); err != nil {
		return nil, err
	}
	content, err := fill("module.cue.tmpl", map[string]string{"Module": module, "Language": cue.LanguageVersion()})
	return []File{{"cue.mod/module.cue", content}}, err
}

// Contract returns a copy of the contract, the health predicates and the Kubernetes types, where editors
// and the cue command look for them. Operetta itself never reads it.
func Contract() ([]File, error) {
	var out []File
	full := schemas.Full()
	err := fs.WalkDir(full, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(full, name)
		out = append(out, File{path.Join(vendored, name), content})
		return err
	})
	return out, err
}

// fill returns a template with its values. CUE is formatted, because the length of a name moves columns.
func fill(name string, values any) ([]byte, error) {
	t, err := template.ParseFS(files, "files/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, values); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !strings.Contains(name, ".cue.") {
		return b.Bytes(), nil
	}
	return format.Source(b.Bytes())
}
