package vet

import "fmt"

// Dependencies returns each edge that the package may have as a line of text: the components, with "*"
// for those whose names depend on the resource; "always", or the condition of the edge; and its
// position.
func (e *Examination) Dependencies() []string {
	v := e.view()
	var out []string
	for _, from := range append(v.components(), "*") {
		for _, edge := range v.edgesOf(from) {
			condition := "always"
			if edge.If != "" {
				condition = "if " + edge.If
			}
			out = append(out, fmt.Sprintf("%s -> %s: %s%s", from, edge.To, condition, edge.Position.InBrackets()))
		}
	}
	return out
}
