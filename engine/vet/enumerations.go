package vet

import (
	"fmt"
	"time"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// costlyEnumeration is how many values an enumeration has at least that is warned of: it costs 20 ms for each evaluation.
const costlyEnumeration = 1000

// costPerPair is what CUE takes to compare one value of an enumeration with another, as was measured.
const costPerPair = 20 * time.Nanosecond

// enumerations finds those with so many values that each evaluation by CUE takes long. A template answers for all values
// at once; but the first resource of a shape has none, and to make one takes ten evaluations.
func enumerations(v *view) fault.Faults {
	var out fault.Faults
	for _, e := range v.Syntax().Examples().Enumerations(costlyEnumeration) {
		cost := time.Duration(e.Count) * time.Duration(e.Count) * costPerPair
		out = append(out, fault.Fault{
			Position: e.Position, Path: e.Name,
			Message: fmt.Sprintf("CUE compares each of the %s values with each, which takes about %v for each evaluation that no template answers", syntax.Thousands(e.Count), cost.Round(10*time.Millisecond)),
			Hint:    `an expression takes almost nothing: =~"^(a|b|c)$"`,
		})
	}
	return out
}
