package vet

import (
	"fmt"

	"operetta.dev/engine/program"
)

// Dependencies returns each edge that a package may have as a line of text: the components, with "*"
// for those whose names depend on the resource; "always", or the condition of the edge; and its
// position.
func Dependencies(p *program.Program) []string {
	v := &view{Program: p, template: p.Template()}
	var out []string
	for _, from := range append(v.components(), "*") {
		for _, e := range v.edgesOf(from) {
			condition := "always"
			if e.If != "" {
				condition = "if " + e.If
			}
			out = append(out, fmt.Sprintf("%s -> %s: %s%s", from, e.To, condition, e.Position.Behind()))
		}
	}
	return out
}
