package syntax

import (
	"maps"
	"slices"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A Conditional is what a comprehension adds to the components, or to the hooks. While it
// is undecided, an evaluation shows nothing of it, and that must not look as if nobody
// wanted it.
type Conditional struct {
	// Component is empty if only an evaluation knows the name.
	Component string
	// Parts are the parts of the component that it adds; AnyPart stands for those
	// whose names are not literal.
	Parts []string
	// BeyondCR is true if values other than the custom resource, which is known in full,
	// decide it as well.
	BeyondCR bool

	guards []span
}

// AnyPart is a part whose name is not known. It has to be taken for objects.
const AnyPart = ""

// A span is a piece of a file.
type span struct{ from, to fault.Position }

func spansOf(guards []ast.Clause) []span {
	out := make([]span, len(guards))
	for i, g := range guards {
		out[i] = spanOf(g)
	}
	return out
}

func spanOf(n ast.Node) span { return span{fault.PositionAt(n.Pos()), fault.PositionAt(n.End())} }

func (s span) holds(p fault.Position) bool {
	return p.File == s.from.File && p.Line >= s.from.Line && p.Line <= s.to.Line
}

// GuardedAt reports whether a position is in one of the guards.
func (c Conditional) GuardedAt(at fault.Position) bool {
	return slices.ContainsFunc(c.guards, func(s span) bool { return s.holds(at) })
}

// Position returns where the outermost comprehension begins.
func (c Conditional) Position() fault.Position {
	if len(c.guards) == 0 {
		return fault.Position{}
	}
	return c.guards[0].from
}

// conditionalOf returns what a member of components that is in a comprehension adds.
func (x *reader) conditionalOf(m Member) Conditional {
	out := Conditional{Component: m.name, BeyondCR: x.beyondCR(m), guards: spansOf(m.guards)}
	for _, part := range m.Members() {
		switch {
		case part.name == "":
			out.Parts = append(out.Parts, AnyPart)
		case isRegular(part.name):
			out.Parts = append(out.Parts, part.name)
		}
	}
	return out
}

// beyondCR reports whether the existence of a member rests on more than the custom
// resource.
func (x *reader) beyondCR(m Member) bool {
	r := newReferences(x.Index)
	r.follow = true
	r.member(Member{guards: m.guards, field: m.field})
	return r.leadsBeyondCR()
}

// Comprehensions are what may be in a package if their conditions hold.
type Comprehensions struct {
	// conditionals are the additions of comprehensions to the components, and
	// conditionalParts are the parts that comprehensions within a component add to it.
	conditionals     []Conditional
	conditionalParts map[string][]string
	// embeddings are the positions at which components are embedded that the text does not show.
	embeddings []span
	// rootGuards are the comprehensions at the root, whatever they add.
	rootGuards []Conditional
	// hooks are the additions of comprehensions to the hooks of each phase. hooksEmbed is true
	// if there may be more phases than the text shows.
	hooks      map[string]*[hookPlaces]Additions
	hooksEmbed bool
}

// Conditionals returns what comprehensions add to the components.
func (c *Comprehensions) Conditionals() []Conditional { return c.conditionals }

// RootGuards returns the comprehensions at the root, whatever they add.
func (c *Comprehensions) RootGuards() []Conditional { return c.rootGuards }

// ConditionalParts returns which parts comprehensions within a component add to it.
func (c *Comprehensions) ConditionalParts(component string) []string {
	return c.conditionalParts[component]
}

// Hides reports whether a comprehension at a place may add components that the text
// does not show.
func (c *Comprehensions) Hides(at fault.Position) bool {
	return len(c.conditionals) == 0 || slices.ContainsFunc(c.embeddings, func(s span) bool { return s.holds(at) })
}

// A Place is a struct in which a hook may be written, each in the one before it. Each may
// have comprehensions.
type Place int

// The structs in which a hook may be written.
const (
	InRoot Place = iota
	InHooks
	InPhase
	hookPlaces
)

// Additions are what the comprehensions in a struct add to the hooks of a phase.
type Additions struct {
	Conditionals []Conditional
	// Embeds is true if the struct may have more members than its text shows.
	Embeds bool
}

// HookName returns the component name of a hook of a phase. No other component can have such a
// name.
func HookName(phase, hook string) string { return "hooks." + phase + "." + hook }

// addHooks records the hooks. They are components, and their path is their name.
func (x *reader) addHooks(hooks Member) {
	for _, phase := range hooks.Members() {
		switch phase.kind {
		case pattern:
		case named:
			for _, hook := range phase.Members() {
				x.addHook(phase.name, [hookPlaces]Member{hooks, phase, hook}, 0)
			}
		case dynamic, embedded:
			x.hooksEmbed = true
		}
	}
}

// addHook records one member of a phase, with the members that it is in.
func (x *reader) addHook(phase string, in [hookPlaces]Member, depth int) {
	if x.hooks[phase] == nil {
		x.hooks[phase] = &[hookPlaces]Additions{}
	}
	at, hook := x.hooks[phase], in[InPhase]
	name := ""
	switch hook.kind {
	case pattern:
		return
	case embedded:
		at[InPhase].Embeds = true
		for _, d := range x.embeddedMembers(hook, depth) {
			in[InPhase] = d
			x.addHook(phase, in, depth+1)
		}
		return
	case named:
		name = HookName(phase, hook.name)
		x.addParts(name, hook)
		x.definitions[name] = append(x.definitions[name], hook)
	case dynamic:
		x.definitions[ComputedName] = append(x.definitions[ComputedName], hook)
	}
	for place, m := range in {
		if len(m.guards) > 0 || Place(place) == InPhase && hook.kind == dynamic {
			c := x.conditionalOf(Member{name: name, field: hook.field, value: hook.value, guards: m.guards})
			at[place].Conditionals = append(at[place].Conditionals, c)
		}
	}
}

// HookAdditions returns what the comprehensions in a struct add to the hooks of a phase.
func (c *Comprehensions) HookAdditions(phase string, in Place) Additions {
	var out Additions
	if at := c.hooks[phase]; at != nil {
		out = at[in]
	}
	out.Embeds = out.Embeds || in == InHooks && c.hooksEmbed
	return out
}

// HookGuards returns the conditionals in the struct that has the hooks of a phase, also those of
// other phases.
func (c *Comprehensions) HookGuards(phase string, in Place) []Conditional {
	if in == InPhase {
		return c.HookAdditions(phase, in).Conditionals
	}
	var out []Conditional
	if in == InRoot {
		out = append(out, c.rootGuards...)
	}
	for _, p := range slices.Sorted(maps.Keys(c.hooks)) {
		out = append(out, c.hooks[p][in].Conditionals...)
	}
	return out
}

// HasHooks reports whether the package writes hooks.
func (x *names) HasHooks() bool { return len(x.fields["hooks"]) > 0 }

// MayHaveHooks reports whether there may be hooks of a phase, as far as the text shows.
func (x *Index) MayHaveHooks(phase string) bool {
	may := x.foreign
	for _, hooks := range x.fields["hooks"] {
		for _, m := range hooks.Members() {
			may = may || m.kind == dynamic || m.kind == embedded || m.name == phase
		}
	}
	return may
}
