package explain

import (
	"slices"

	"operetta.dev/engine/graph/picture"
	"operetta.dev/engine/status"
)

// Picture returns the components with their objects, as they are in the cluster, to be drawn. kind says why
// one component needs another one; nil stands for dependencies that the author has declared, since a status
// does not tell.
func (r Resource) Picture(kind func(component, needs string) picture.Kind) picture.Picture {
	title := r.Kind + "/" + r.Name
	if r.Namespace != "" {
		title += " in " + r.Namespace
	}
	if r.Phase != "" {
		title += ": " + string(r.Phase) + ", " + r.Ready + " components"
	}
	out := picture.Picture{Title: title}
	for _, c := range r.Components {
		n := picture.Node{Title: c.Name, State: string(c.State), Tone: ToneOf(c.State)}
		for _, o := range c.Objects {
			n.Lines = append(n.Lines, objectLines(o)...)
		}
		out.Nodes = append(out.Nodes, n)
	}
	for to, c := range r.Components {
		for _, needs := range c.DependsOn {
			from := slices.IndexFunc(r.Components, func(o Component) bool { return o.Name == needs })
			if from < 0 {
				continue
			}
			e := picture.Edge{From: from, To: to}
			if kind != nil {
				e.Kind = kind(c.Name, needs)
			}
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// objectLines returns the lines of an object and of what is below it.
func objectLines(o Object) []picture.Line {
	text := o.Kind + "/" + o.Name
	if o.Health != Ready {
		text += ": " + looks[o.Health].word
	}
	out := []picture.Line{{Text: text, Tone: looks[o.Health].tone}}
	for _, cause := range o.Causes {
		out = append(out, objectLines(cause)...)
	}
	return out
}

// ToneOf returns how the state of a component is drawn, by whoever draws components.
func ToneOf(s status.State) picture.Tone {
	switch s {
	case status.Verified:
		return picture.Good
	case status.Failed, status.Held:
		return picture.Bad
	case status.Excluded, status.Deleting:
		return picture.Absent
	case status.Applied, status.Waiting, status.Retrying:
		return picture.Waiting
	}
	return picture.Plain
}
