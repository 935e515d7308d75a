package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/graph/picture"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// A Palette colours words by what they mean. Plain leaves them as they are.
type Palette struct{ Good, Warn, Bad, Dim, Bold func(string) string }

// Plain is the Palette of a text without colours.
var Plain = Palette{Good: same, Warn: same, Bad: same, Dim: same, Bold: same}

func same(s string) string { return s }

// Tree draws a resource: a line of its own, what is wrong with it as a whole, and below that the components
// with their objects, each below what it depends on. now is the time from which ages are counted.
func (r Resource) Tree(palette Palette, now time.Time) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.head(palette))
	if r.Fault != "" {
		fmt.Fprintln(&b, palette.Bad(redact.OneLine(r.Fault)))
	}
	for _, c := range r.Conditions {
		fmt.Fprintf(&b, "%s %s\n", palette.Bad(c.Type+": "+c.Reason), palette.Dim(text(redact.OneLine(c.Message), "for "+age(c.Since, now))))
	}
	d := drawing{r, palette, now}
	// Edges that an operator wrote have no cycle, and a forged status is drawn without edges.
	tree, err := d.graph(true).Tree(d.lines)
	if err != nil {
		tree, _ = d.graph(false).Tree(d.lines)
	}
	b.WriteString(tree)
	if out := r.excluded(); len(out) > 0 {
		fmt.Fprintln(&b, palette.Dim("not wanted by the spec: "+strings.Join(out, ", ")))
	}
	for _, line := range d.operator() {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

func (r Resource) head(palette Palette) string {
	line := palette.Bold(r.Kind + "/" + r.Name)
	if r.Namespace != "" {
		line += palette.Dim(" in " + r.Namespace)
	}
	if r.Phase == "" {
		return line + "  " + palette.Warn(r.Message)
	}
	line += "  " + palette.health(r.Health, string(r.Phase)) + "  " + palette.Dim(r.Ready+" components")
	if r.ObservedGeneration != r.Generation {
		line += "  " + palette.Warn(r.Message)
	}
	return line
}

// health colours a word by the health of what it is about.
func (i Palette) health(h Health, word string) string {
	switch looks[h].tone {
	case picture.Good:
		return i.Good(word)
	case picture.Bad:
		return i.Bad(word)
	case picture.Plain, picture.Waiting, picture.Absent:
	}
	return i.Warn(word)
}

// excluded returns the components that should not exist and have no objects.
func (r Resource) excluded() []string {
	var out []string
	for _, c := range r.Components {
		if c.State == status.Excluded && len(c.Objects) == 0 {
			out = append(out, c.Name)
		}
	}
	return out
}

type drawing struct {
	resource Resource
	palette  Palette
	now      time.Time
}

// graph returns the components that have something to show, with or without their edges.
func (d drawing) graph(edges bool) *graph.Graph[string, string] {
	g := graph.New[string, string]()
	excluded := d.resource.excluded()
	for _, c := range d.resource.Components {
		if !slices.Contains(excluded, c.Name) {
			g.AddNode(c.Name)
		}
	}
	if !edges {
		return g
	}
	for _, c := range d.resource.Components {
		for _, on := range c.DependsOn {
			_ = g.AddEdge(c.Name, on, "") // a component without anything to show has no edge
		}
	}
	return g
}

func (d drawing) component(name string) Component {
	i := slices.IndexFunc(d.resource.Components, func(c Component) bool { return c.Name == name })
	return d.resource.Components[i]
}

// label is the line of a component: its state, the reason for it and since when.
func (d drawing) label(c Component) string {
	mark, colour := d.state(c.State)
	out := c.Name + "  " + colour(mark+" "+string(c.State))
	if c.Since != nil {
		out += "  " + d.palette.Dim(text(string(c.Reason), "for "+age(*c.Since, d.now)))
	}
	return out
}

// lines are that of a component, and below it what it waits for, what waits for it, and its objects.
func (d drawing) lines(name string) []string {
	c := d.component(name)
	out := []string{d.label(c)}
	if c.State != status.Verified {
		if c.Message != "" {
			out = append(out, redact.OneLine(c.Message))
		}
		if c.Blocks != "" {
			out = append(out, d.palette.Dim("blocks "+redact.OneLine(c.Blocks)))
		}
	}
	for _, o := range c.Objects {
		out = append(out, d.object(o, c.Message, "")...)
	}
	return out
}

// object returns the lines of an object and of what is below it. What a line above has said is left out.
func (d drawing) object(o Object, said, indent string) []string {
	line := indent + o.Kind + "/" + o.Name
	if o.Name == "" {
		line = indent + "its objects of kind " + o.Kind
	}
	if o.Namespace != d.resource.Namespace && o.Namespace != "" {
		line += " in " + o.Namespace
	}
	line += "  " + d.palette.health(o.Health, looks[o.Health].word)
	switch message := redact.OneLine(o.Message); {
	case o.Health == Ready && strings.Contains(said, o.ref()+": "):
		line += "  " + d.palette.Dim("since the status was written")
	case message != "" && !strings.Contains(redact.OneLine(said), message):
		line += "  " + message
	}
	out := []string{line}
	below := strings.Repeat(" ", utf8.RuneCountInString(indent)) + "└─ "
	for _, cause := range o.Causes {
		out = append(out, d.object(cause, said, below)...)
	}
	return out
}

// ref is how the message of a component names the object.
func (o Object) ref() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// looks are how the health of an object is written, and drawn.
var looks = map[Health]struct {
	word string
	tone picture.Tone
}{
	Ready: {"ready", picture.Good}, NotReady: {"not ready", picture.Waiting}, Unreadable: {"cannot be read", picture.Waiting},
	Failed: {"failed", picture.Bad}, Missing: {"does not exist", picture.Bad}, Foreign: {"not its own", picture.Bad},
	Deleting: {"being deleted", picture.Absent},
}

// state returns the sign and the colour of a component.
func (d drawing) state(s status.State) (string, func(string) string) {
	switch s {
	case status.Verified:
		return "✓", d.palette.Good
	case status.Failed, status.Held:
		return "✗", d.palette.Bad
	case status.Deleting, status.Excluded:
		return "-", d.palette.Dim
	case status.Applied, status.Waiting, status.Retrying:
	}
	return "…", d.palette.Warn
}

// text joins the parts that are not empty.
func text(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "  ")
}

// age is how long ago something was, as kubectl writes it.
func age(since, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(since))) }
