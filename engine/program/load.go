package program

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
)

// A Program is a compiled operator package. It is immutable and safe for
// concurrent use.
//
// It owns a CUE context of its own, which is freed with it: reloading packages
// into one context would keep every version of them.
type Program struct {
	name   string
	digest string
	// base is the package as it was compiled. Only fill looks at it.
	base cue.Value
	// static is the package evaluated with nothing filled in.
	static   cue.Value
	contract cue.Value
	files    []*ast.File
	index    *syntax.Index
	// names and hookNames match what the contract accepts as names.
	names, hookNames *regexp.Regexp
	importPath       string
	meta             Meta
	limits           Limits
	// reach is where objects may be beyond the namespace of the custom resource.
	reach Reach
	// configurable says that it takes configuration.
	configurable bool
	// locked is what of it only the administrator sets.
	locked *locked
	// crUsed, liveUsed and inputsUsed are what the package refers to of each.
	crUsed, liveUsed, inputsUsed *projection
	// digests says that the package may refer to the digest of what an object holds.
	digests bool
	// rests are the Secrets that objects rest on, by component and object.
	rests *sync.Map
	// literals are the secrets that the package itself has written.
	literals []string
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
	// Scale is where the number of replicas is; its zero value is nowhere.
	Scale Scale
}

// A Scale is where a custom resource keeps its number of replicas, as paths.
type Scale struct{ Replicas, Observed, Selector string }

// scaleOf reads where the number of replicas is.
func scaleOf(v cue.Value) Scale {
	at := func(name string) string { return stringOr(v.LookupPath(cue.MakePath(cue.Str(name))), "") }
	if !v.Exists() {
		return Scale{}
	}
	return Scale{Replicas: at("replicas"), Observed: at("observed"), Selector: at("selector")}
}

// A Column is one of the author's columns of kubectl get.
type Column struct {
	Title, JSONPath, Type, Format, Description string
	Priority                                   int64
}

// Load compiles a snapshot. It errors with Faults when the package does not
// parse, does not resolve, contradicts itself, or is not a controller.
func Load(s *source.Snapshot) (*Program, error) {
	p, faults, err := Suspect(s)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return p, nil
}

// findContract finds the contract among the package's imports.
func (p *Program) findContract(ctx *cue.Context, inst *build.Instance) error {
	for _, imp := range inst.Dependencies() {
		if imp.ImportPath == syntax.ContractPath {
			p.contract = ctx.BuildInstance(imp)
			p.names, p.hookNames = namePattern(p.contract, "#Name"), namePattern(p.contract, "#HookName")
		}
	}
	if p.static.LookupPath(cue.MakePath(cue.Str("scope"))).Exists() {
		return nil
	}
	// A package that does not compile has no fields at all.
	if err := p.static.Validate(); err != nil {
		return p.withoutLiterals(p.withHints(fault.Of(err, p.static)))
	}
	return p.noOperator()
}

// noOperator is the fault of a package that is some other CUE.
func (p *Program) noOperator() error {
	return fault.Faults{{
		Position: p.index.Root(),
		Message:  "this package is not an operator: it does not embed the contract",
		Hint:     fmt.Sprintf("write `import %q` and, below it, `operator.#Controller`", syntax.ContractPath),
	}}
}

// Name returns the package's name.
func (p *Program) Name() string { return p.name }

// Digest returns the digest of the package's files.
func (p *Program) Digest() string { return p.digest }

// Syntax returns what the text of the package says, before any evaluation.
func (p *Program) Syntax() *syntax.Index { return p.index }

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
func (p *Program) readMeta() (Meta, fault.Faults) {
	var m Meta
	var faults fault.Faults
	m.Group, faults = p.required("group", "for example group: \"example.com\"", faults)
	m.Kind, faults = p.required("kind", "for example kind: \"Shop\"", faults)
	versions, more := p.readVersions()
	if faults = append(faults, more...); len(faults) > 0 {
		return m, faults
	}
	m.Versions = versions
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: m.Group, Kind: m.Kind})
	m.Plural = p.stringAt("plural", plural.Resource)
	m.Singular = p.stringAt("singular", singular.Resource)
	m.ClusterScoped = p.stringAt("scope", "Namespaced") == "Cluster"
	m.ShortNames = p.keysAt("shortNames")
	m.Categories = p.keysAt("categories")
	m.Description = p.stringAt("description", specDoc(m.Versions))
	return m, nil
}

// required returns a string field that every package must have.
func (p *Program) required(name, hint string, faults fault.Faults) (string, fault.Faults) {
	v := p.static.LookupPath(cue.MakePath(cue.Str(name)))
	s, err := v.String()
	if err == nil || !cue.IsIncomplete(err) { // what is wrong with it, CUE says
		return s, faults
	}
	return "", append(faults, p.lacking(name, hint))
}

// lacking is the fault of a package without a field that it must have.
func (p *Program) lacking(name, hint string) fault.Fault {
	return fault.Fault{Position: p.index.Root(), Path: name, Message: "the package has no " + name, Hint: "write one, " + hint}
}

func (p *Program) readVersions() ([]VersionMeta, fault.Faults) {
	it, err := p.static.LookupPath(cue.MakePath(cue.Str("versions"))).Fields()
	if err != nil {
		return nil, fault.Of(err, p.static)
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
			Scale:      scaleOf(v.LookupPath(cue.MakePath(cue.Str("scale")))),
		})
	}
	if len(out) == 0 {
		return nil, fault.Faults{p.lacking("versions", "for example versions: v1: spec: #Spec")}
	}
	if len(out) == 1 {
		out[0].Storage = true
	}
	stored := 0
	for _, v := range out {
		if v.Storage {
			stored++
		}
	}
	if stored != 1 {
		return nil, fault.Faults{{
			Position: p.index.Root(),
			Path:     "versions",
			Message:  fmt.Sprintf("%d versions are the storage version", stored),
			Hint:     "write storage: true in exactly one of them",
		}}
	}
	return out, nil
}

// statusSchema returns the schema of the author's status in one version: what
// the version says, or else the package's status.
func (p *Program) statusSchema(version cue.Value) cue.Value {
	if own := version.LookupPath(cue.MakePath(cue.Str("status"))); own.Exists() {
		return own
	}
	return p.static.LookupPath(cue.MakePath(cue.Str("status")))
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
	return stringOr(p.static.LookupPath(cue.MakePath(cue.Str(name))), fallback)
}

func (p *Program) keysAt(name string) []string {
	it, err := p.static.LookupPath(cue.MakePath(cue.Str(name))).Fields()
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
			if !fault.At(g.Pos()).IsContract() {
				return strings.TrimSpace(g.Text())
			}
		}
	}
	return ""
}

func stringOr(v cue.Value, fallback string) string {
	if !v.Exists() {
		return fallback // a Value of nothing panics when it is asked
	}
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
