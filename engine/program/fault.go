package program

import (
	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// PositionOf returns where a value is written by the author, or at all.
func PositionOf(v cue.Value) fault.Position {
	if at := authored(v); len(at) > 0 {
		return at[0]
	}
	return fault.At(v.Pos())
}
