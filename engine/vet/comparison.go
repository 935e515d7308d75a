package vet

import (
	"fmt"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// comparisons finds == and != between values that can never be equal, because they
// are of different types. CUE compares any two.
func comparisons(v *view) fault.Faults {
	schema := v.CRSchema()
	var out fault.Faults
	for _, c := range v.Syntax().Comparisons() {
		left, right := kindOf(schema, c.Left), kindOf(schema, c.Right)
		if left == 0 || right == 0 || left&right != 0 {
			continue
		}
		out = append(out, fault.Fault{
			Position: c.Position,
			Message:  fmt.Sprintf("%s compares %v with %v, which are never equal", c.Source, left, right),
			Hint:     "write both sides as values of one type; quotes make a string",
		})
	}
	return out
}

// kindOf returns what kinds an operand may be of, or 0 when that is not known.
func kindOf(schema cue.Value, o syntax.Operand) cue.Kind {
	if o.Kind != 0 {
		return o.Kind
	}
	if len(o.Path) < 2 || o.Path[0] != "cr" {
		return 0
	}
	for _, name := range o.Path[1:] {
		next, ok := fieldOf(schema, name)
		if !ok {
			return 0
		}
		schema = next
	}
	return schema.IncompleteKind()
}
