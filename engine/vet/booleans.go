package vet

import (
	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// readAsBoolean are names that YAML reads as booleans unless they are quoted.
var readAsBoolean = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true}

// booleans finds fields of the spec that a user cannot write without quotes: YAML reads `on: 1` as `true: 1`.
func booleans(v *view) fault.Faults {
	var out fault.Faults
	seen := map[string]bool{}
	eachType(fieldOf(v.CRSchema(), "spec"), 0, func(schema cue.Value) {
		for _, name := range program.FieldNames(schema) {
			field := fieldOf(schema, name)
			if path := schemaPath(field); readAsBoolean[name] && !seen[path] {
				seen[path] = true
				out = append(out, fault.Fault{
					Position: program.PositionOf(field), Path: path,
					Message: "YAML reads the name " + name + " as a boolean, so that a user has to quote it",
					Hint:    "choose another name",
				})
			}
		}
	})
	return out
}
