package program

import (
	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// What is wrong with a package, or with a value that was given to one, is a fault.
type (
	// A Fault is one thing that is wrong.
	Fault = fault.Fault
	// Faults are all that is wrong.
	Faults = fault.Faults
	// A Position is a place in a package's files.
	Position = fault.Position
)

// PositionOf returns where a value is written by the author, or at all.
func PositionOf(v cue.Value) Position {
	if at := authored(v); len(at) > 0 {
		return at[0]
	}
	return fault.At(v.Pos())
}
