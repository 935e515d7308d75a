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
		fmt.Fprintf(&b, "  label=\"%s\"; labelloc=t;\n", dotText.Replace(p.title()))
	}
	for i, n := range p.Nodes {
		tone := tones[n.Tone]
		style := ""
		if n.Tone == Absent {
			style = `, style="rounded,filled,dashed"`
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\\l\", color=\"%s\", fillcolor=\"%s\"%s];\n", i, n.words(dotText, `\l`), tone.strong, tone.light, style)
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "  n%d -> n%d%s;\n", e.From, e.To, kinds[e.Kind].dot)
	}
	b.WriteString("}\n")
	return b.String()
}

// words returns the lines of a box as a text, with signs.
func (n Node) words(escaped *strings.Replacer, between string) string {
	head := boxLine(n.Title)
	if n.State != "" {
		head += "  " + tones[n.Tone].mark + boxLine(n.State)
	}
	out := []string{escaped.Replace(head)}
	for _, l := range n.lines() {
		out = append(out, escaped.Replace(tones[l.Tone].mark+l.Text))
	}
	return strings.Join(out, between)
}

// dotText escapes a text for a quoted string. Graphviz reads a backslash and entities of HTML.
var dotText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// Mermaid returns the picture as a Mermaid flowchart.
func (p Picture) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range p.Nodes {
		// The identifier is a number: a name may hold any character, or be a keyword.
		fmt.Fprintf(&b, "  n%d[\"%s\"]%s\n", i, n.words(mermaidText, "<br/>"), tones[n.Tone].class)
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
