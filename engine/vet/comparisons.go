package vet

import (
	"fmt"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// comparisons finds == and != between values that are never equal, because they have different
// types. CUE compares any two values.
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

// kindOf returns the kinds that an operand may have, or 0 if they are unknown.
func kindOf(schema cue.Value, o syntax.Operand) cue.Kind {
	if o.Kind != 0 {
		return o.Kind
	}
	if len(o.Path) < 2 || o.Path[0] != "cr" {
		return 0
	}
	for _, name := range o.Path[1:] {
		if schema = fieldOf(schema, name); !schema.Exists() {
			return 0
		}
	}
	return schema.IncompleteKind()
}
