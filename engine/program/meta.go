package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// Meta describes the custom resource of a package.
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
	// Scale is where the number of replicas is; the zero value means that there is none.
	Scale Scale
	// Neighbour is the version that this one is converted to and from, or "" for the storage version.
	Neighbour string
	// Lossy says why the package loses something on the way to the neighbour and back, or is "".
	Lossy string
}

// A Scale is where a custom resource keeps its number of replicas, as paths.
type Scale struct{ Replicas, Observed, Selector string }

// A Column is one of the author's columns of kubectl get.
type Column struct {
	Title, JSONPath, Type, Format, Description string
	Priority                                   int64
}

// stored returns the storage version.
func (m Meta) stored() VersionMeta {
	for _, v := range m.Versions {
		if v.Storage {
			return v
		}
	}
	return VersionMeta{}
}

// readMeta reads how a package describes its custom resource. Faults about missing fields get
// the position of the package.
func readMeta(static cue.Value, index *syntax.Index) (m Meta, faults fault.Faults) {
	root := index.Root()
	lacking := func(name, hint string) {
		faults = append(faults, fault.Fault{Position: root, Path: name, Message: "the package has no " + name, Hint: "write one, " + hint})
	}
	required := func(name, hint string) string {
		s, err := Lookup(static, name).String()
		if err != nil && cue.IsIncomplete(err) { // CUE reports all other errors
			lacking(name, hint)
		}
		return s
	}
	m.Group = required("group", "for example group: \"example.com\"")
	m.Kind = required("kind", "for example kind: \"Shop\"")
	versions, err := readVersions(static)
	m.Versions = versions
	stored := slices.DeleteFunc(slices.Clone(versions), func(v VersionMeta) bool { return !v.Storage })
	switch {
	case err != nil:
		faults = append(faults, fault.FromCUE(err, static)...)
	case len(versions) == 0:
		lacking("versions", "for example versions: v1: spec: #Spec")
	case len(stored) != 1:
		faults = append(faults, fault.Fault{
			Position: index.PositionOf("versions"), Path: "versions",
			Message: fmt.Sprintf("%d versions are the storage version", len(stored)),
			Hint:    "write storage: true in exactly one of them",
		})
	default:
		faults = append(faults, m.conversionFaults(static, index)...)
	}
	if len(faults) > 0 {
		return Meta{Group: m.Group, Kind: m.Kind}, faults
	}
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: m.Group, Kind: m.Kind})
	m.Plural = stringOr(Lookup(static, "plural"), plural.Resource)
	m.Singular = stringOr(Lookup(static, "singular"), singular.Resource)
	m.ClusterScoped = stringOr(Lookup(static, "scope"), "Namespaced") == "Cluster"
	m.Description = stringOr(Lookup(static, "description"), specDoc(m.stored().Spec))
	for name := range fields(Lookup(static, "shortNames")) {
		m.ShortNames = append(m.ShortNames, name)
	}
	for name := range fields(Lookup(static, "categories")) {
		m.Categories = append(m.Categories, name)
	}
	return m, nil
}

// readVersions reads the API versions. A single one is the storage version.
func readVersions(static cue.Value) ([]VersionMeta, error) {
	it, err := Lookup(static, "versions").Fields()
	if err != nil {
		return nil, err
	}
	var out []VersionMeta
	for it.Next() {
		v := it.Value()
		version := VersionMeta{
			Name:       it.Selector().Unquoted(),
			Served:     boolAt(v, "served", true),
			Storage:    boolAt(v, "storage", false),
			Deprecated: stringOr(Lookup(v, "deprecated"), ""),
			Spec:       Lookup(v, "spec"),
			Status:     Lookup(v, "status"),
			Columns:    columnsOf(v),
		}
		if !version.Status.Exists() {
			version.Status = Lookup(static, "status")
		}
		_ = Lookup(v, "scale").Decode(&version.Scale) // Validate has reported its errors
		for other, c := range fields(Lookup(v, "convert")) {
			version.Neighbour, version.Lossy = other, stringOr(Lookup(c, "lossy"), "")
		}
		out = append(out, version)
	}
	if len(out) == 1 {
		out[0].Storage = true
	}
	return out, nil
}

// columnsOf returns the printer columns of a version, without the invalid ones, which Validate
// has reported.
func columnsOf(version cue.Value) []Column {
	var out []Column
	for title, v := range fields(Lookup(version, "printerColumns")) {
		c := Column{Title: title}
		if v.Decode(&c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// specDoc returns the author's doc comment of a spec.
func specDoc(spec cue.Value) string {
	for _, g := range spec.Doc() {
		if !fault.PositionAt(g.Pos()).IsContract() {
			return strings.TrimSpace(g.Text())
		}
	}
	return ""
}

// stringOr returns a string, or the fallback if the value is not a string.
func stringOr(v cue.Value, fallback string) string {
	if !v.Exists() {
		return fallback // calling methods on a Value that does not exist panics
	}
	if s, err := v.String(); err == nil {
		return s
	}
	return fallback
}

// boolAt returns a boolean field, or the fallback if the field is not a boolean.
func boolAt(v cue.Value, name string, fallback bool) bool {
	if b, err := Lookup(v, name).Bool(); err == nil {
		return b
	}
	return fallback
}
