package graph

import (
	"cmp"
	"fmt"
	"strings"
)

// A CycleError is a shortest cycle through its first node.
type CycleError[N cmp.Ordered, E any] struct {
	// Path holds the edges in order: each begins where the previous one ends, and the last
	// ends where the first begins. It is never empty.
	Path []Edge[N, E]
}

// Error returns the cycle as "cycle: a -> b (web.cue:12) -> a (db.cue:4)": the origin of each
// edge follows the node that it leads to.
func (e *CycleError[N, E]) Error() string {
	var b strings.Builder
	b.WriteString("cycle: ")
	for i, edge := range e.Path {
		if i == 0 {
			fmt.Fprint(&b, edge.From)
		}
		fmt.Fprintf(&b, " -> %v%s", edge.To, origin(edge.Data))
	}
	return b.String()
}

func origin(data any) string {
	if text := fmt.Sprint(data); text != "" {
		return " (" + text + ")"
	}
	return ""
}
