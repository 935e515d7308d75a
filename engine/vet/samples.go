package vet

import (
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program"
)

// A sample is an evaluation with a custom resource that is made up from the schema.
type sample struct {
	namespace string
	session   program.Session
	rollout   program.Rollout
	// coincides is true if values that are made up may be equal by accident: a text that does not
	// contain the name of its field, or a number in the elements of two lists.
	coincides bool
}

// Samples returns sessions with custom resources that are made up from the schema of a package, as
// far as that is possible.
func Samples(p *program.Program) []program.Session {
	var out []program.Session
	for _, s := range samples(p) {
		out = append(out, s.session)
	}
	return out
}

const sampleNamespace = "sample-namespace"

// samples returns an evaluation with as few fields in the spec as the schema allows, one with as
// many as can be made up, and one that also has an element in each list. An evaluation is left out
// if the schema requires a value that cannot be made up, or if it would equal another one.
func samples(p *program.Program) []sample {
	spec := fieldOf(p.Static().CRSchema(), "spec")
	var out []sample
	var before []any
	for _, m := range []*maker{{}, {full: true}, {full: true, lists: true}} {
		made, ok := m.value(spec, "spec", 0)
		same := func(other any) bool { return reflect.DeepEqual(other, made) }
		if !ok || slices.ContainsFunc(before, same) {
			continue
		}
		before = append(before, made)
		gvk := p.GroupVersionKind()
		session := program.Session{CR: map[string]any{
			"apiVersion": gvk.GroupVersion().String(),
			"kind":       gvk.Kind,
			"metadata":   map[string]any{"name": "sample-name", "namespace": sampleNamespace, "uid": "sample-uid"},
			"spec":       made,
		}}
		r, err := p.Evaluate(session)
		if err != nil || len(r.Invalid) > 0 || len(r.Misconfigured) > 0 {
			continue
		}
		out = append(out, sample{namespace: sampleNamespace, session: session, rollout: r, coincides: m.coincides || m.lists})
	}
	return out
}

// A maker makes up values.
type maker struct {
	full      bool // also makes up optional fields
	lists     bool // also makes up elements of lists that may be empty
	coincides bool // see sample
}

// value makes up a value of a schema; ok is false if it cannot.
func (m *maker) value(schema cue.Value, path string, depth int) (value any, ok bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch kind := schema.IncompleteKind(); {
	case kind == cue.TopKind:
		return map[string]any{}, true
	case kind == cue.StructKind:
		return m.structure(schema, path, depth)
	case kind&cue.StringKind != 0:
		return m.first(schema, texts(path))
	case kind&cue.BoolKind != 0:
		return m.first(schema, []any{m.full, !m.full})
	case kind&cue.NumberKind != 0:
		return m.first(schema, numbers)
	case kind&cue.ListKind != 0:
		return m.list(schema, path, depth)
	}
	return nil, false
}

// structure makes up a struct. A field with a default keeps it, except for those of the kinds
// overridden.
func (m *maker) structure(schema cue.Value, path string, depth int) (any, bool) {
	out := map[string]any{}
	it, err := schema.Fields(cue.Optional(true))
	if err != nil {
		return nil, false
	}
	for it.Next() {
		constraint, field := it.Selector().ConstraintType(), it.Value()
		optional := constraint == cue.OptionalConstraint
		complete := constraint == 0 && field.Validate(cue.Concrete(true)) == nil
		if !m.full && (optional || complete) || complete && field.IncompleteKind()&m.overridden() == 0 {
			continue
		}
		name := it.Selector().Unquoted()
		value, ok := m.value(field, path+"-"+name, depth+1)
		switch {
		case ok:
			out[name] = value
		case !optional && !complete:
			return nil, false
		}
	}
	return out, true
}

// overridden returns the kinds of the values that are made up although they have a default.
func (m *maker) overridden() cue.Kind {
	if m.lists {
		return cue.BoolKind | cue.StructKind | cue.ListKind
	}
	return cue.BoolKind | cue.StructKind
}

func (m *maker) list(schema cue.Value, path string, depth int) (any, bool) {
	candidates := []any{[]any{}}
	if element, ok := m.value(schema.LookupPath(cue.MakePath(cue.AnyIndex)), path+"-element", depth+1); ok {
		candidates = append(candidates, []any{element})
	}
	if m.full && len(candidates) == 2 {
		candidates[0], candidates[1] = candidates[1], candidates[0]
	}
	return m.first(schema, candidates)
}

// first returns the first candidate that a schema allows, or else a value of its enumeration.
func (m *maker) first(schema cue.Value, candidates []any) (any, bool) {
	op, args := schema.Expr()
	if op == cue.OrOp && len(args) > maxTried { // each try would cost as much as all of its alternatives
		candidates = nil
	}
	for i, c := range candidates {
		if schema.FillPath(cue.Path{}, c).Validate(cue.Concrete(true)) != nil {
			continue
		}
		if _, text := c.(string); text && i >= uniqueTexts {
			m.coincides = true
		}
		return c, true
	}
	var value any
	for _, a := range args {
		if op == cue.OrOp && a.IsConcrete() && a.Decode(&value) == nil {
			m.coincides = true
			return value, true
		}
	}
	return nil, false
}

// maxTried is how many alternatives of an enumeration candidates are tried with.
const maxTried = 100

// uniqueTexts is the number of texts, from the first on, that contain the name of the field.
const uniqueTexts = 4

// texts returns strings in the formats that schemas most often require.
func texts(path string) []any {
	path = strings.ToLower(path)
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, path)
	return []any{
		"sample-" + path, letters, letters + ".example.com", "https://" + letters + ".example.com",
		"a", "A", "1", "/", "1Gi", "100m", "30s", "1.2.3", "v1.2.3", "0 0 * * *", "10.0.0.0", "10.0.0.0/8",
		"YQ==", "a/b:c", "a@example.com", "2026-01-01T00:00:00Z", "",
	}
}

var numbers = []any{
	int64(1), int64(2), int64(0), int64(10), int64(100), int64(8080), int64(65535), int64(-1), 0.5,
}
