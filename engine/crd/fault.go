package crd

import (
	"cmp"
	"fmt"
	"slices"

	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// faultAt returns a fault at a position. The position is not valid if the fault is not in CUE.
func faultAt(pos token.Pos, path, message, hint string) fault.Fault {
	return fault.Fault{Position: fault.PositionAt(pos), Origin: fault.TokenPositionOf(pos), Path: path, Message: message, Hint: hint}
}

// merged sorts faults by position, and merges those with the same position and message: a
// definition is often used at several paths. It returns nil if there are no faults.
func merged(faults []fault.Fault) error {
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b fault.Fault) int {
		return cmp.Or(fault.Compare(a.Position, b.Position), cmp.Compare(a.Origin.Column, b.Origin.Column), cmp.Compare(a.Message, b.Message))
	})
	var out fault.Faults
	var others [][]string
	for _, f := range faults {
		last := len(out) - 1
		switch {
		case last < 0 || f.Position.File == "" || out[last].Origin != f.Origin || out[last].Message != f.Message:
			out, others = append(out, f), append(others, nil)
		case out[last].Path != f.Path:
			others[last] = append(others[last], f.Path)
		}
	}
	for i, paths := range others {
		out[i].Origin = fault.TokenPosition{}
		switch len(paths) {
		case 0:
		case 1:
			out[i].Message += " (as at " + paths[0] + ")"
		default:
			out[i].Message += fmt.Sprintf(" (as at %s and %d more paths)", paths[0], len(paths)-1)
		}
	}
	return out.OrNil()
}
