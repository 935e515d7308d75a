package compile

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// rests reports whether a value rests on a hole. A value may be concrete all the same: CUE takes
// an operand that is known for the value of a hole that it is unified with.
func (t *translator) rests(v cue.Value) bool {
	return !t.eachHole(v, 0, func([]string) bool { return false })
}

// restsOn returns the holes that a value rests on.
func (t *translator) restsOn(v cue.Value) [][]string {
	var out [][]string
	seen := map[string]bool{}
	t.eachHole(v, 0, func(path []string) bool {
		key := strings.Join(path, separator)
		if !seen[key] {
			seen[key] = true
			out = append(out, path)
		}
		return true
	})
	return out
}

// eachHole calls a function with the holes that a value rests on, until it returns false. It returns
// false then. What is nested too deep is left out: node refuses it.
func (t *translator) eachHole(v cue.Value, depth int, yield func([]string) bool) bool {
	if depth > maxNesting || !v.Exists() && v.Source() == nil {
		return true
	}
	if path, ok := t.at[v.Source()]; ok {
		return yield(path)
	}
	if path, ok := t.writtenHole(v); ok {
		return yield(path)
	}
	members, ok := membersOf(v)
	if !ok {
		return t.eachHoleOf(v, depth, yield)
	}
	for _, member := range members {
		if !t.eachHole(member, depth+1, yield) {
			return false
		}
	}
	return true
}

// membersOf returns the fields of a struct, or the elements of a list. ok is false for other values, and
// if they cannot be listed.
func membersOf(v cue.Value) (out []cue.Value, ok bool) {
	switch v.IncompleteKind() {
	case cue.StructKind:
		it, err := v.Fields(cue.Hidden(true), cue.Definitions(true))
		for err == nil && it.Next() {
			out = append(out, it.Value())
		}
		return out, err == nil
	case cue.ListKind:
		it, err := v.List()
		for err == nil && it.Next() {
			out = append(out, it.Value())
		}
		return out, err == nil
	}
	return nil, false
}

// eachHoleOf is eachHole for the expression of a value.
func (t *translator) eachHoleOf(v cue.Value, depth int, yield func([]string) bool) bool {
	op, args := v.Expr()
	switch op {
	case cue.SelectorOp, cue.IndexOp:
		if to, ok := follow(v); ok {
			return t.eachHole(to, depth+1, yield)
		}
		if kind := args[0].IncompleteKind(); kind == cue.StructKind || kind == cue.ListKind {
			args = args[1:] // there is no such field
		}
	case cue.NoOp:
		if len(args) != 1 || args[0].Source() == v.Source() {
			return t.eachWritten(v, yield)
		}
	}
	for _, arg := range args {
		if !t.eachHole(arg, depth+1, yield) {
			return false
		}
	}
	return true
}

// eachWritten is eachHole for a value of which CUE does not tell what it was made from, such as
// what a let stands for: it goes by the text.
func (t *translator) eachWritten(v cue.Value, yield func([]string) bool) bool {
	e := program.ExpressionOf(v)
	if _, literal := e.(*ast.BasicLit); e == nil || literal {
		return true
	}
	for _, r := range t.index.ReferencesIn(e) {
		for _, hole := range t.matching(r.Path) {
			if !yield(hole) {
				return false
			}
		}
	}
	return true
}

// matching returns the holes at a path of a reference and below it.
func (t *translator) matching(path []string) [][]string {
	var out [][]string
	for _, hole := range leavesIn(t.holes) {
		matches := len(hole) >= len(path)
		for i := 0; matches && i < len(path); i++ {
			matches = path[i] == hole[i] || path[i] == syntax.Each
		}
		if matches {
			out = append(out, hole)
		}
	}
	return out
}

// posOf returns where a value is written.
func posOf(v cue.Value) fault.Position { return program.PositionOf(v) }
