package vet

import (
	"fmt"

	"operetta.dev/engine/program"
)

// Dependencies returns each edge that a package may have, as a line: the components, "*"
// for those whose names only a resource tells, whether the edge exists always or under
// which condition, and where it is written.
func Dependencies(p *program.Program) []string {
	v := &view{Program: p, template: p.Template()}
	var out []string
	for _, from := range append(v.named(), "*") {
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
