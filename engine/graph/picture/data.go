package picture

// Data is a picture for programs, with all of its text. Its form as JSON is documented in docs/graph.md.
type Data struct {
	Title string     `json:"title"`
	Boxes []Box      `json:"components"`
	Edges []DataEdge `json:"edges"`
}

// A Box is a node for programs.
type Box struct {
	Name string `json:"name"`
	// State is how it is, in a word or two, and Tone the meaning of that.
	State   string `json:"state,omitempty"`
	Tone    string `json:"tone,omitempty"`
	Objects []Text `json:"objects,omitempty"`
}

// A Text is a line of a node for programs.
type Text struct {
	Text string `json:"text"`
	Tone string `json:"tone,omitempty"`
}

// A DataEdge is an edge for programs, by the names of nodes.
type DataEdge struct {
	Component string `json:"component"`
	Needs     string `json:"needs"`
	Kind      string `json:"kind"`
}

// Data returns the picture for programs.
func (p Picture) Data() Data {
	out := Data{Title: p.Title, Boxes: []Box{}, Edges: []DataEdge{}}
	for _, n := range p.Nodes {
		box := Box{Name: n.Title, State: n.State, Tone: tones[n.Tone].name}
		for _, l := range n.Lines {
			box.Objects = append(box.Objects, Text{Text: l.Text, Tone: tones[l.Tone].name})
		}
		out.Boxes = append(out.Boxes, box)
	}
	for _, e := range p.Edges {
		out.Edges = append(out.Edges, DataEdge{Component: p.Nodes[e.To].Title, Needs: p.Nodes[e.From].Title, Kind: kinds[e.Kind].name})
	}
	return out
}
