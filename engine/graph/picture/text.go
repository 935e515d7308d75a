package picture

import (
	"fmt"
	"slices"
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
		tone := tones[n.Tone]
		text := make([]string, 0, 1+len(n.Lines))
		for _, l := range n.words() {
			text = append(text, dotText(l))
		}
		style := ""
		if n.Tone == Absent {
			style = `, style="rounded,filled,dashed"`
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\\l\", color=\"%s\", fillcolor=\"%s\"%s];\n", i, strings.Join(text, `\l`), tone.strong, tone.light, style)
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "  n%d -> n%d%s;\n", e.From, e.To, kinds[e.Kind].dot)
	}
	b.WriteString("}\n")
	return b.String()
}

// words returns the lines of a box as texts, with signs.
func (n Node) words() []string {
	head := boxLine(n.Title)
	if n.State != "" {
		head += "  " + tones[n.Tone].mark + boxLine(n.State)
	}
	out := []string{head}
	for _, l := range n.lines() {
		out = append(out, tones[l.Tone].mark+l.Text)
	}
	return out
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
		fmt.Fprintf(&b, "  n%d[\"%s\"]%s\n", i, strings.Join(text, "<br/>"), tones[n.Tone].class)
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, kinds[e.Kind].arrow, e.To)
	}
	for tone, t := range tones {
		if t.class != "" && slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Tone == Tone(tone) }) {
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:%s\n", strings.TrimPrefix(t.class, ":::"), t.light, t.strong, ink)
		}
	}
	return b.String()
}

// mermaidText escapes the characters that have a meaning in a quoted Mermaid label.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;", "\\", "#92;")
