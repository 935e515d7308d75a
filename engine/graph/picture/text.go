package picture

import (
	"fmt"
	"strings"
)

// EdgeList returns the edges that are not simply declared, one a line, for what draws them all alike.
func (p Picture) EdgeList() string {
	var b strings.Builder
	for _, e := range p.Edges {
		if e.Kind != Declared {
			fmt.Fprintf(&b, "%s needs %s: %s\n", boxLine(p.Nodes[e.To].Title), boxLine(p.Nodes[e.From].Title), kinds[e.Kind].text)
		}
	}
	return b.String()
}

// DOT returns the picture for Graphviz.
func (p Picture) DOT() string {
	var b strings.Builder
	b.WriteString("digraph {\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n")
	if p.Title != "" {
		fmt.Fprintf(&b, "  label=\"%s\"; labelloc=t;\n", dotText(p.title()))
	}
	for i, n := range p.Nodes {
		strong, light := n.Tone.colours()
		text := make([]string, 0, 1+len(n.Lines))
		for _, l := range n.words() {
			text = append(text, dotText(l))
		}
		style := ""
		if n.Tone == Absent {
			style = `, style="rounded,filled,dashed"`
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\\l\", color=\"%s\", fillcolor=\"%s\"%s];\n", i, strings.Join(text, `\l`), strong, light, style)
	}
	for _, e := range p.Edges {
		style := map[Kind]string{Derived: " [style=dashed]", OrderOnly: " [style=dotted]"}[e.Kind]
		fmt.Fprintf(&b, "  n%d -> n%d%s;\n", e.From, e.To, style)
	}
	b.WriteString("}\n")
	return b.String()
}

// words returns the lines of a box as texts, with signs.
func (n Node) words() []string {
	head := boxLine(n.Title)
	if n.State != "" {
		head += "  " + n.Tone.mark() + boxLine(n.State)
	}
	out := []string{head}
	for _, l := range n.lines() {
		out = append(out, l.Tone.mark()+l.Text)
	}
	return out
}

// mark returns the sign of a tone as a character.
func (t Tone) mark() string {
	switch t {
	case Good:
		return "✓ "
	case Waiting:
		return "… "
	case Bad:
		return "✗ "
	case Absent:
		return "- "
	case Plain:
	}
	return ""
}

// dotText escapes a text for a quoted string. Graphviz reads a backslash and entities of HTML.
func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(text)
}

// Mermaid returns the picture as a Mermaid flowchart.
func (p Picture) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range p.Nodes {
		text := make([]string, 0, 1+len(n.Lines))
		for _, l := range n.words() {
			text = append(text, mermaidText.Replace(l))
		}
		// The identifier is a number: a name may hold any character, or be a keyword.
		fmt.Fprintf(&b, "  n%d[\"%s\"]%s\n", i, strings.Join(text, "<br/>"), classes[n.Tone])
	}
	for _, e := range p.Edges {
		arrow := "-->"
		switch e.Kind {
		case Derived:
			arrow = "-.->"
		case OrderOnly:
			arrow = "-.->|order only|"
		case Declared:
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	for _, t := range []Tone{Good, Waiting, Bad, Absent} {
		if strings.Contains(b.String(), classes[t]+"\n") {
			strong, light := t.colours()
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:%s\n", strings.TrimPrefix(classes[t], ":::"), light, strong, ink)
		}
	}
	return b.String()
}

// classes are the classes of boxes in Mermaid.
var classes = map[Tone]string{Good: ":::good", Waiting: ":::waiting", Bad: ":::bad", Absent: ":::absent"}

// mermaidText escapes the characters that have a meaning in a quoted Mermaid label.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;", "\\", "#92;")
