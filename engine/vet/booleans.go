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
	var walk func(schema cue.Value, depth int)
	walk = func(schema cue.Value, depth int) {
		if depth > maxDepth || schema.IncompleteKind()&(cue.StructKind|cue.ListKind) == 0 {
			return
		}
		for _, name := range fieldNames(schema) {
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
		for _, m := range members(schema) {
			walk(m, depth+1)
		}
	}
	walk(fieldOf(v.CRSchema(), "spec"), 0)
	return out
}
