package vet

import (
	"fmt"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// selfReferences finds values that are made of themselves, mostly because a field has the name of a variable.
func selfReferences(v *view) fault.Faults {
	var out fault.Faults
	for _, r := range v.Syntax().SelfReferences() {
		if v.isEvaluated(r.Position) {
			continue
		}
		out = append(out, fault.Fault{
			Position: r.Position,
			Message:  fmt.Sprintf("%s means the field that it is written in, which has no other value", r.Name),
			Hint:     program.ClosestNameHint,
		})
	}
	return out
}
