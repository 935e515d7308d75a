package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/fault"
)

const (
	// maxNames is how many resources of a group are named.
	maxNames = 3
	// maxAlike is how many groups there are before those that differ in values alone become one.
	maxAlike = 10
	// maxFields is how many fields of an object are shown.
	maxFields = 100
)

// Text returns a plan as a person reads it: a summary, the changes with resources that change alike together, and the
// summary again, because the beginning of a long text is off the screen.
func (p Plan) Text(palette explain.Palette) string {
	var b strings.Builder
	summary := p.Summary()
	fmt.Fprintf(&b, "%s\n", summary)
	for _, g := range p.groups() {
		b.WriteString("\n" + g.text(palette))
	}
	if len(p.Permissions) > 0 {
		b.WriteString("\npermissions of the operator\n")
		for _, c := range p.Permissions {
			with := palette.Good
			if c.Sign == "-" {
				with = palette.Bad
			}
			fmt.Fprintf(&b, "  %s %s\n", with(c.Sign), c.Permission)
		}
	}
	for i, n := range p.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if strings.Count(b.String(), "\n") > 1 {
		fmt.Fprintf(&b, "\n%s\n", summary)
	}
	return b.String()
}

// classWords are the classes as a summary says them.
var classWords = map[Class]string{
	Unchanged: "unchanged", Changed: "changed", New: "created", Invalid: "invalid", Failing: "failing", Waiting: "waiting", Paused: "paused", Deleting: "being deleted",
}

// Summary returns the counts on one line.
func (p Plan) Summary() string {
	resources := []string{}
	for _, c := range Classes {
		if n := p.Count(c); n > 0 {
			resources = append(resources, fmt.Sprintf("%d %s", n, classWords[c]))
		}
	}
	objects := []string{}
	for _, o := range outcomes {
		if n := len(p.Affected(o)); n > 0 {
			objects = append(objects, fmt.Sprintf("%d %s", n, o))
		}
	}
	out := fmt.Sprintf("%s of %s: %s", Plural(len(p.Resources), "resource"), p.Package, cmp.Or(strings.Join(resources, ", "), "nothing to plan"))
	if len(objects) > 0 {
		out += "; objects: " + strings.Join(objects, ", ")
	}
	if n := len(p.Permissions); n > 0 {
		out += fmt.Sprintf("; %s", Plural(n, "permission"))
	}
	return out
}

// Plural returns a number with a word.
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// OrNone returns the value of a field as it is shown.
func OrNone(value string) string { return cmp.Or(value, "(none)") }

// A group is resources that change alike.
type group struct {
	class   Class
	members []Resource
	// objects have the names of the resource and its namespace as placeholders.
	objects  []Object
	order    []Order
	problems []Problem
}

// groups returns the resources that change, those that change alike together, and the largest group first.
func (p Plan) groups() []group {
	exact := p.alike(func(r Resource) string { return fmt.Sprintf("%v", generic(r)) })
	if len(exact) <= maxAlike {
		return exact
	}
	return p.alike(func(r Resource) string { return fmt.Sprintf("%v", withoutValues(generic(r))) })
}

// alike groups the resources that change by a key.
func (p Plan) alike(key func(Resource) string) []group {
	at := map[string]int{}
	var out []group
	for _, r := range p.Resources {
		if !r.changes() {
			continue
		}
		k := key(r)
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			g := generic(r)
			out = append(out, group{class: g.Class, objects: g.Objects, order: g.Order, problems: g.Problems})
		}
		out[i].and(r)
	}
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(slices.Index(Classes, a.class), slices.Index(Classes, b.class)), cmp.Compare(len(b.members), len(a.members)))
	})
	return out
}

// several stands for a value that is another one in each resource.
const several = "(several values)"

// and adds a resource to a group. Values that are others than those of the group become several.
func (g *group) and(r Resource) {
	g.members = append(g.members, r)
	for i, o := range generic(r).Objects {
		for j, f := range o.Fields {
			have := &g.objects[i].Fields[j]
			if have.Before != f.Before {
				have.Before = several
			}
			if have.After != f.After {
				have.After = several
			}
		}
	}
}

// What stands for the name and the namespace of a resource in what its group has in common.
const (
	itsName      = "{name}"
	itsNamespace = "{namespace}"
)

// generic returns what happens to a resource without who it is.
func generic(r Resource) Resource {
	out := Resource{Class: r.Class, Order: r.Order, Problems: slices.Clone(r.Problems)}
	put := func(text string) string { return replaceWord(text, r.Name, itsName) }
	for _, o := range r.Objects {
		o.Name, o.Fields = put(o.Name), slices.Clone(o.Fields)
		if o.Namespace == r.Namespace && o.Namespace != "" {
			o.Namespace = itsNamespace
		}
		for i, f := range o.Fields {
			o.Fields[i] = diff.Field{Path: f.Path, Before: put(f.Before), After: put(f.After)}
		}
		out.Objects = append(out.Objects, o)
	}
	for i := range out.Problems {
		out.Problems[i].Message = put(out.Problems[i].Message)
	}
	return out
}

// replaceWord replaces a word in a text, where no letter or digit is before or behind it. A word without a letter stays,
// because a number means something else.
func replaceWord(text, word, by string) string {
	if !strings.ContainsFunc(word, unicode.IsLetter) {
		return text
	}
	var out strings.Builder
	for {
		at := strings.Index(text, word)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := at + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		behind, _ := utf8.DecodeRuneInString(text[end:])
		out.WriteString(text[:at])
		if at > 0 && inWord(before) || end < len(text) && inWord(behind) {
			out.WriteString(word)
		} else {
			out.WriteString(by)
		}
		text = text[end:]
	}
}

// inWord reports whether a character is part of a word.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// withoutValues returns a resource without the values of its fields.
func withoutValues(r Resource) Resource {
	for i := range r.Objects {
		for j := range r.Objects[i].Fields {
			f := &r.Objects[i].Fields[j]
			f.Before, f.After = "", ""
		}
	}
	return r
}

// text returns a group as text.
func (g group) text(palette explain.Palette) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", Plural(len(g.members), "resource"), g.names())
	switch g.class {
	case Invalid:
		fmt.Fprintf(&b, "  %s\n", palette.Bad(g.invalid()))
	case Paused:
		fmt.Fprintf(&b, "  %s\n", palette.Warn("paused: this happens once the pause ends"))
	case Unchanged, Changed, New, Failing, Waiting, Deleting:
	}
	if g.single() { // who has a name needs no placeholder, and what looks like one is text of its own
		g.objects, g.problems = g.members[0].Objects, g.members[0].Problems
	}
	for _, p := range g.problems {
		fmt.Fprintf(&b, "  %s %s\n", palette.Bad("!"), p)
	}
	for _, o := range g.objects {
		g.object(&b, o, palette)
	}
	for _, o := range g.order {
		fmt.Fprintf(&b, "  %s %s\n", palette.Warn("order"), o)
	}
	return b.String()
}

// single reports whether there is nobody else in the group.
func (g group) single() bool { return len(g.members) == 1 }

// invalid says how much of an invalid resource is not written: all of it, or the components that are wrong.
func (g group) invalid() string {
	if slices.ContainsFunc(g.problems, func(p Problem) bool { return p.Component != "" }) {
		return "invalid in part: what has a ! is not written, and the rest is"
	}
	return "invalid: nothing of it is written"
}

// names returns the names of the members, or of the first of them.
func (g group) names() string {
	var out []string
	for i, r := range g.members {
		if i == maxNames && len(g.members) > maxNames+1 {
			out = append(out, fmt.Sprintf("and %d more", len(g.members)-i))
			break
		}
		out = append(out, Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String())
	}
	return strings.Join(out, ", ")
}

// object writes an object of a group.
func (g group) object(b *strings.Builder, o Object, palette explain.Palette) {
	if o.Namespace == itsNamespace || g.single() && o.Namespace == g.members[0].Namespace {
		o.Namespace = ""
	}
	c := Change{Component: o.Component, Object: o.String(), What: string(o.Outcome), More: max(0, len(o.Fields)-maxFields)}
	c.Sign = map[dryrun.Outcome]string{
		dryrun.Created: palette.Good("+"), dryrun.Updated: palette.Warn("~"), dryrun.Deleted: palette.Bad("-"), dryrun.Recreated: palette.Bad("-/+"),
		Orphaned: palette.Warn("?"), Delayed: palette.Bad("-"), Undecided: palette.Warn("?"),
	}[o.Outcome]
	for _, f := range o.Fields[:len(o.Fields)-c.More] {
		c.Fields = append(c.Fields, fmt.Sprintf("%s: %s → %s", f.Path, OrNone(f.Before), OrNone(f.After)))
	}
	c.Write(b, palette)
}

// A Change is an object as text: below a resource, with the fields that matter.
type Change struct {
	// Sign comes first, such as a coloured "+".
	Sign, Component, Object string
	// What is what happens to it, and Fields are those of which something is said.
	What   string
	Fields []string
	// More is how many fields are left out.
	More int
}

// Write writes the change.
func (c Change) Write(b *strings.Builder, palette explain.Palette) {
	component := ""
	if c.Component != "" {
		component = c.Component + ": "
	}
	fmt.Fprintf(b, "  %s %s%s %s\n", c.Sign, component, c.Object, palette.Dim(c.What))
	for _, f := range c.Fields {
		fmt.Fprintf(b, "      %s\n", f)
	}
	if c.More > 0 {
		fmt.Fprintf(b, "      and %d more\n", c.More)
	}
}

// ProblemOf returns a fault of a component, or of none for "", as a problem without the values of Secrets.
func ProblemOf(mask *diff.Mask, component string, f fault.Fault) Problem {
	message := strings.TrimPrefix(f.Message, f.Path+": ")
	if f.Hint != "" {
		message += " (" + f.Hint + ")"
	}
	return Problem{
		Component: mask.Text(component), Path: mask.Text(f.Path), Message: mask.Text(message),
		File: f.Position.File, Line: f.Position.Line,
	}
}

// String returns the problem on one line, with the line of the package behind it.
func (p Problem) String() string {
	out := p.Message
	if p.Path != "" && !strings.HasPrefix(out, p.Path) {
		out = p.Path + ": " + out
	}
	if p.Component != "" {
		out = p.Component + ": " + out
	}
	if p.File != "" {
		out += fmt.Sprintf(" (%s:%d)", p.File, p.Line)
	}
	return out
}

// String returns the order on one line.
func (o Order) String() string {
	var parts []string
	if len(o.After) > 0 {
		parts = append(parts, "behind "+strings.Join(o.After, ", ")+" now")
	}
	if len(o.NoMore) > 0 {
		parts = append(parts, "no longer behind "+strings.Join(o.NoMore, ", "))
	}
	return o.Component + ": " + strings.Join(parts, ", ")
}
