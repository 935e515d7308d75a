package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// unknownFields returns the root fields that the contract does not have. CUE
// accepts them, because a field written beside an embedding belongs to it, so a
// misspelled `componets` would silently do nothing.
func (p *Program) unknownFields() Faults {
	known := p.vocabulary()
	var faults Faults
	for _, name := range slices.Sorted(maps.Keys(p.index.fields)) {
		if !isRegular(name) || slices.Contains(known, name) {
			continue
		}
		faults = append(faults, Fault{
			Position: positionAt(p.index.fields[name][0].field.Label.Pos()),
			Path:     name,
			Message:  "unknown field at the root of the package",
			Hint:     p.unknownFieldHint(name, known),
		})
	}
	return faults
}

func (p *Program) unknownFieldHint(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Sprintf("fields of your own are written _%s (hidden) or #%s (a definition); the contract has %s",
		name, strings.ToUpper(name[:1])+name[1:], strings.Join(known, ", "))
}

// vocabulary returns the fields of the contract's #Controller.
func (p *Program) vocabulary() []string {
	it, err := p.contract.LookupPath(cue.MakePath(cue.Def("#Controller"))).Fields(cue.Optional(true))
	if err != nil {
		return nil
	}
	var out []string
	for it.Next() {
		out = append(out, it.Selector().Unquoted())
	}
	return out
}

// Names returns the names that the package writes below a path of its
// components, such as components or components.web.outputs, and whether there
// may be more that only an evaluation knows.
func (p *Program) Names(path ...string) (names []string, open bool) {
	m, ok := p.index.names[strings.Join(path, ".")]
	if !ok {
		return nil, true
	}
	return slices.Sorted(maps.Keys(m.names)), m.open
}

// CRSchema returns the schema of the custom resource.
func (p *Program) CRSchema() cue.Value {
	return p.base.LookupPath(cue.MakePath(cue.Str("cr")))
}

// Template returns the package evaluated without any custom resource: what is
// known of every reconcile. Its predicates are mostly unknown.
func (p *Program) Template() []Component {
	out, _ := p.components(p.base)
	return out
}

// Nearest returns the candidate that a misspelled name most likely means: the
// one at the smallest Levenshtein distance, if that is at most a third of its
// length.
func Nearest(name string, candidates []string) (string, bool) {
	best, distance := "", len(name)/3+1
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
