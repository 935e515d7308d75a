package shadow

import (
	"fmt"
	"strings"

	"operetta.dev/engine/explain"
	"operetta.dev/engine/plan"
)

// Text returns how a resource compares as a person reads it: a line, and below it what is not the same.
func (r Resource) Text(palette explain.Palette) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", r.Title(), headlineColor(palette, r.State)(r.Headline()))
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  %s %s\n", palette.Bad("!"), p)
	}
	for _, o := range r.Objects {
		o.text(&b, palette, r.Namespace)
	}
	for _, p := range r.Undecided {
		fmt.Fprintf(&b, "  %s %s\n", palette.Warn("?"), p)
	}
	for _, h := range r.Hooks {
		fmt.Fprintf(&b, "  %s\n", palette.Dim("note: the hook "+h+" may run once the kind is handed over"))
	}
	for _, o := range r.Owners {
		fmt.Fprintf(&b, "  %s\n", palette.Dim("note: "+o))
	}
	return b.String()
}

// headlineColor colours a state.
func headlineColor(palette explain.Palette, state State) func(string) string {
	switch state {
	case Same:
		return palette.Good
	case Different, Undecided:
		return palette.Warn
	case Invalid, Unreadable:
		return palette.Bad
	case Deleting:
	}
	return palette.Dim
}

// text writes an object that is not the same.
func (o Object) text(b *strings.Builder, palette explain.Palette, home string) {
	sign := map[Relation]string{
		Missing: palette.Good("+"), Going: palette.Warn("?"), Unrendered: palette.Bad("-"), Changed: palette.Warn("~"),
	}[o.Relation]
	if o.Namespace == home {
		o.Namespace = ""
	}
	c := plan.Change{Sign: sign, Component: o.Component, Object: o.String(), What: relationWords[o.Relation], More: o.MoreFields}
	for _, f := range o.Fields {
		c.Fields = append(c.Fields, f.String())
	}
	c.Write(b, palette)
	if o.Alike != "" {
		fmt.Fprintf(b, "      %s\n", palette.Dim(o.Alike+" is alike, and not rendered: is it this one under another name?"))
	}
}

// String returns the field on one line.
func (f Field) String() string {
	out := fmt.Sprintf("%s: live %s, wanted %s", f.Path, plan.OrNone(f.Live), plan.OrNone(f.Wanted))
	switch len(f.Managers) {
	case 0:
		return out
	case 1:
		return out + " (manager " + f.Managers[0] + ")"
	}
	return out + " (managers " + strings.Join(f.Managers, ", ") + ")"
}
