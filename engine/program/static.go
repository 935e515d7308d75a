package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A Static is a package as it is without a custom resource: its text, and its values with nothing filled in.
type Static struct {
	compiled compiled
	index    *syntax.Index
	files    []*ast.File
	// value is the package evaluated with nothing filled in.
	value    cue.Value
	contract contract
	// unknown are the names that imported packages do not have, by where CUE stops at them.
	unknown map[fault.TokenPosition]syntax.UnknownName
}

// vocabularyFaults returns the fields that the contract does not have. CUE accepts
// them: fields beside an embedding are not bound by its closedness, at any depth, so
// that a misspelled dependOn would silently do nothing.
func (s *Static) vocabularyFaults() fault.Faults {
	controller := s.contract.value.LookupPath(cue.MakePath(cue.Def("#Controller")))
	out := unknownMembers(nil, s.index.Fields(), controller)
	// A value from a reference is not written in place.
	closed := controller.Unify(s.value)
	for _, f := range fault.FromCUE(closed.Validate(), closed) {
		f.Path = strings.TrimPrefix(f.Path, "#Controller.")
		if name, known, ok := unknownField(closed, f); ok && !covered(out, f) {
			f.Hint = HintAmong(name, known)
			out = append(out, f)
		}
	}
	return s.explainUnknown(out)
}

// unknownMembers returns which members a closed schema does not have.
func unknownMembers(at []cue.Selector, members []syntax.Member, schema cue.Value) fault.Faults {
	var out fault.Faults
	for _, m := range members {
		if !m.IsRegular() {
			continue
		}
		name := cue.Str(m.Name())
		path := append(slices.Clone(at), name)
		if !schema.Allows(name) {
			out = append(out, fault.Fault{
				Position: m.Position(),
				Path:     cue.MakePath(path...).String(),
				Code:     fault.UnknownField,
				Message:  fault.UnknownFieldMessage,
				Hint:     unknownHint(m.Name(), len(at) == 0, schema),
			})
			continue
		}
		below := schema.LookupPath(cue.MakePath(name))
		if !below.Exists() {
			below = schema.LookupPath(cue.MakePath(name.Optional()))
		}
		if below.IncompleteKind() == cue.StructKind {
			out = append(out, unknownMembers(path, m.Members(), below)...)
		}
	}
	return out
}

// unknownHint returns what to write in place of a field that a schema does not have.
func unknownHint(name string, root bool, schema cue.Value) string {
	if root && name == "clusterScoped" {
		return "it allowed everything everywhere; " + reachHint
	}
	known := FieldNames(schema)
	if len(known) == 0 {
		return patternHint(schema)
	}
	if _, near := ClosestName(name, known); near || !root {
		return HintAmong(name, known)
	}
	return fmt.Sprintf("fields of your own are written _%s (hidden) or #%s (a definition); %s",
		name, strings.ToUpper(name[:1])+name[1:], HintAmong(name, known))
}

// Parts returns the parts that the contract has for a component.
func (s *Static) Parts() []string {
	return FieldNames(s.contract.value.LookupPath(cue.MakePath(cue.Def("#Component"))))
}

// CRSchema returns the schema of the custom resource: a tree of its own with each
// call, see fill.
func (s *Static) CRSchema() cue.Value {
	return Lookup(s.compiled.fill(nil), "cr")
}

// Template returns the components of the package, evaluated without a custom resource. They
// have what is common to all reconciles. Their predicates are mostly unknown.
func (p *Program) Template() []Component {
	out, _ := p.withoutSession().components()
	return out
}

// TemplateHooks returns the hooks of the package evaluated without any custom resource.
func (p *Program) TemplateHooks() []Hook { return p.withoutSession().hooks() }

// Lookup returns what the package has at a path of its fields.
func (s *Static) Lookup(path ...string) cue.Value {
	return Lookup(s.compiled.fill(nil), path...)
}

// KindAt returns the kind of the object or input at a path, or "" if that is not known
// without a custom resource.
func (s *Static) KindAt(path []string) string {
	kind := Lookup(s.value, append(slices.Clip(path), "kind")...)
	return cmp.Or(stringOr(kind, ""), s.index.Secrets().KindAt(path))
}

// ClosestName returns the candidate that a misspelled name most likely means: the
// one at the smallest edit distance, if that is at most a third of its length, or one
// in a short one.
func ClosestName(name string, candidates []string) (string, bool) {
	best, distance := "", max(len(name)/3, min(len(name)/2, 1))+1
	for _, c := range candidates {
		if d := levenshtein(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best, best != ""
}

// levenshtein returns the edit distance; two letters that changed places are one
// edit.
func levenshtein(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
