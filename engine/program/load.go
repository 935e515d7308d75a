package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/source"
)

// contractPath is the import path of the contract.
const contractPath = "operetta.dev/schemas/operator"

// A Program is a compiled operator package. It is immutable and safe for
// concurrent use.
//
// It owns a CUE context of its own, which is freed with it: reloading packages
// into one context would keep every version of them.
type Program struct {
	name   string
	digest string
	base   cue.Value // the whole package
	// reconcile is what an evaluation fills: base without what it does not need.
	reconcile cue.Value
	contract  cue.Value
	files     []*ast.File
	index     *index
	meta      Meta
}

// Meta is what a package says about its custom resource.
type Meta struct {
	Group, Kind, Plural, Singular string
	Description                   string
	ShortNames, Categories        []string
	ClusterScoped                 bool
	Versions                      []VersionMeta
}

// VersionMeta is one API version of the custom resource.
type VersionMeta struct {
	Name       string
	Served     bool
	Storage    bool
	Deprecated string
	Spec       cue.Value
	Status     cue.Value
	Columns    []Column
}

// A Column is one of the author's columns of kubectl get.
type Column struct {
	Title, JSONPath, Type, Format, Description string
	Priority                                   int64
}

// Load compiles a snapshot. It errors with Faults when the package does not
// parse, does not resolve, contradicts itself, or is not a controller.
func Load(s *source.Snapshot) (*Program, error) {
	inst, faults := buildInstance(s)
	if len(faults) > 0 {
		return nil, faults
	}
	base := cuecontext.New().BuildInstance(inst)
	p := &Program{name: s.Name(), digest: s.Digest(), base: base, files: inst.Files}
	p.index = newIndex(inst.Files)
	if err := p.findContract(inst); err != nil {
		return nil, err
	}
	// Names outside the contract are looked for first: CUE would accept them.
	if faults := p.unknownFields(); len(faults) > 0 {
		return nil, faults
	}
	if err := base.Validate(); err != nil {
		return nil, faultsOf(err)
	}
	meta, err := p.readMeta()
	if err != nil {
		return nil, err
	}
	p.meta = meta
	return p, nil
}

// findContract finds the contract among the package's imports.
func (p *Program) findContract(inst *build.Instance) error {
	for _, imp := range inst.Dependencies() {
		if imp.ImportPath == contractPath {
			p.contract = p.base.Context().BuildInstance(imp)
			return nil
		}
	}
	return Faults{{
		Position: Position{File: inst.Files[0].Filename, Line: 1},
		Message:  "this package is not an operator: it does not import the contract",
		Hint:     fmt.Sprintf("write `import %q` and, below it, `operator.#Controller`", contractPath),
	}}
}

// Name returns the package's name.
func (p *Program) Name() string { return p.name }

// Digest returns the digest of the package's files.
func (p *Program) Digest() string { return p.digest }

// Meta returns what the package says about its custom resource.
func (p *Program) Meta() Meta { return p.meta }

// GroupVersionKind returns the type that the engine reconciles: the kind in its
// storage version.
func (p *Program) GroupVersionKind() schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: p.meta.Group, Kind: p.meta.Kind}
	for _, v := range p.meta.Versions {
		if v.Storage {
			gvk.Version = v.Name
		}
	}
	return gvk
}

// readMeta reads what the package says about its custom resource.
func (p *Program) readMeta() (Meta, error) {
	var m Meta
	var faults Faults
	m.Group, faults = p.required("group", "for example group: \"example.com\"", faults)
	m.Kind, faults = p.required("kind", "for example kind: \"Shop\"", faults)
	if len(faults) > 0 {
		return m, faults
	}
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: m.Group, Kind: m.Kind})
	m.Plural = p.stringAt("plural", plural.Resource)
	m.Singular = p.stringAt("singular", singular.Resource)
	m.ClusterScoped = p.stringAt("scope", "Namespaced") == "Cluster"
	m.ShortNames = p.keysAt("shortNames")
	m.Categories = p.keysAt("categories")
	m.Versions, faults = p.readVersions()
	m.Description = p.stringAt("description", specDoc(m.Versions))
	return m, faults.OrNil()
}

// required returns a string field that every package must have.
func (p *Program) required(name, hint string, faults Faults) (string, Faults) {
	v := p.base.LookupPath(cue.MakePath(cue.Str(name)))
	s, err := v.String()
	if err == nil {
		return s, faults
	}
	return "", append(faults, Fault{
		Position: p.index.root,
		Path:     name,
		Message:  "the package has no " + name,
		Hint:     "write one, " + hint,
	})
}

func (p *Program) readVersions() ([]VersionMeta, Faults) {
	it, err := p.base.LookupPath(cue.MakePath(cue.Str("versions"))).Fields()
	if err != nil {
		return nil, faultsOf(err)
	}
	var out []VersionMeta
	for it.Next() {
		v := it.Value()
		out = append(out, VersionMeta{
			Name:       it.Selector().Unquoted(),
			Served:     boolAt(v, "served", true),
			Storage:    boolAt(v, "storage", false),
			Deprecated: stringOr(v.LookupPath(cue.MakePath(cue.Str("deprecated"))), ""),
			Spec:       v.LookupPath(cue.MakePath(cue.Str("spec"))),
			Status:     p.statusSchema(v),
			Columns:    columnsOf(v),
		})
	}
	if len(out) == 0 {
		return nil, Faults{{Position: p.index.root, Path: "versions", Message: "the package has no versions", Hint: "write versions: v1: spec: #Spec"}}
	}
	stored := slices.IndexFunc(out, func(v VersionMeta) bool { return v.Storage })
	if stored < 0 && len(out) == 1 {
		out[0].Storage, stored = true, 0
	}
	if stored < 0 {
		return nil, Faults{{Position: p.index.root, Path: "versions", Message: "no version is the storage version", Hint: "write storage: true in one of them"}}
	}
	return out, nil
}

// statusSchema returns the schema of the author's status in one version: what
// the version says, or else the package's status.
func (p *Program) statusSchema(version cue.Value) cue.Value {
	if own := version.LookupPath(cue.MakePath(cue.Str("status"))); own.Exists() {
		return own
	}
	return p.base.LookupPath(cue.MakePath(cue.Str("status")))
}

func columnsOf(version cue.Value) []Column {
	it, err := version.LookupPath(cue.MakePath(cue.Str("printerColumns"))).Fields()
	if err != nil {
		return nil
	}
	var out []Column
	for it.Next() {
		c := Column{Title: it.Selector().Unquoted()}
		if err := it.Value().Decode(&c); err != nil {
			continue // base.Validate has judged it already
		}
		priority, _ := it.Value().LookupPath(cue.MakePath(cue.Str("priority"))).Int64()
		c.Priority = priority
		c.JSONPath = stringOr(it.Value().LookupPath(cue.MakePath(cue.Str("jsonPath"))), "")
		c.Type = stringOr(it.Value().LookupPath(cue.MakePath(cue.Str("type"))), "string")
		c.Format = stringOr(it.Value().LookupPath(cue.MakePath(cue.Str("format"))), "")
		c.Description = stringOr(it.Value().LookupPath(cue.MakePath(cue.Str("description"))), "")
		out = append(out, c)
	}
	return out
}

func (p *Program) stringAt(name, fallback string) string {
	return stringOr(p.base.LookupPath(cue.MakePath(cue.Str(name))), fallback)
}

func (p *Program) keysAt(name string) []string {
	it, err := p.base.LookupPath(cue.MakePath(cue.Str(name))).Fields()
	if err != nil {
		return nil
	}
	var out []string
	for it.Next() {
		out = append(out, it.Selector().Unquoted())
	}
	return out
}

// specDoc returns the doc comment of the stored version's spec.
func specDoc(versions []VersionMeta) string {
	for _, v := range versions {
		if !v.Storage {
			continue
		}
		for _, g := range v.Spec.Doc() {
			return strings.TrimSpace(g.Text())
		}
	}
	return ""
}

func stringOr(v cue.Value, fallback string) string {
	if s, err := v.String(); err == nil {
		return s
	}
	return fallback
}

func boolAt(v cue.Value, name string, fallback bool) bool {
	if b, err := v.LookupPath(cue.MakePath(cue.Str(name))).Bool(); err == nil {
		return b
	}
	return fallback
}
