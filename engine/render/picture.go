package render

import (
	"operetta.dev/engine/explain"
	"operetta.dev/engine/graph/picture"
	"operetta.dev/engine/program"
)

// Picture returns the components, their objects and their dependencies, to be drawn.
func (o Output) Picture(title string) picture.Picture {
	out := picture.Picture{Title: title}
	components, places := o.byName(), map[string]int{}
	for _, c := range o.Components {
		if _, shown := components[c.Name]; !shown {
			continue
		}
		places[c.Name] = len(out.Nodes)
		n := picture.Node{Title: c.Name}
		if label(c) != c.Name {
			n.State, n.Tone = string(c.State), explain.ToneOf(c.State)
		}
		tone := picture.Plain
		if n.Tone == picture.Absent { // only what should not exist shows in each object
			tone = n.Tone
		}
		for _, line := range objectLines(c.Source) {
			n.Lines = append(n.Lines, picture.Line{Text: line, Tone: tone})
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, c := range o.Components {
		for _, e := range c.Source.Edges {
			to, shown := places[c.Name]
			from, known := places[e.To]
			if shown && known {
				out.Edges = append(out.Edges, picture.Edge{From: from, To: to, Kind: EdgeKind(e)})
			}
		}
	}
	return out
}

// EdgeKind returns how an edge is drawn.
func EdgeKind(e program.Edge) picture.Kind {
	switch {
	case e.Until == program.UntilApplied:
		return picture.OrderOnly
	case e.Origin == program.Derived:
		return picture.Derived
	}
	return picture.Declared
}
