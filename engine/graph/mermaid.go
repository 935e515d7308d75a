package graph

import (
	"fmt"
	"strings"
)

// Mermaid writes the graph as a Mermaid flowchart, top to bottom in the order of a
// rollout: an arrow leads from a node to what needs it. Parallel edges are one arrow. A
// graph with cycles is written too: a picture is how they are understood.
func (g *Graph[N, E]) Mermaid(style Style[N]) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range g.nodes {
		label, lines := style.text(n)
		text := make([]string, 0, 1+len(lines))
		for _, l := range append([]string{label}, lines...) {
			text = append(text, mermaidText.Replace(l))
		}
		// The identifier is a number: a name may hold any character, or be a keyword.
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, strings.Join(text, "<br/>"))
	}
	for i := range g.nodes {
		last := -1
		for _, h := range g.in[i] {
			if h.node != last {
				fmt.Fprintf(&b, "  n%d --> n%d\n", i, h.node)
			}
			last = h.node
		}
	}
	return b.String()
}

// mermaidText writes the characters that mean something inside a quoted Mermaid label as entities.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;")
