package program

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// A conditional is what a comprehension adds to the components. While it is not
// decided, an evaluation shows nothing of it, and that must not look as if nobody
// wanted it.
type conditional struct {
	// component is empty if only an evaluation knows the name.
	component string
	// parts are the parts of the component that it adds; anyPart stands for those
	// that are not written out.
	parts  []string
	guards []span
	// beyondCR says that the custom resource alone, which is known in full, does
	// not decide it.
	beyondCR bool
}

// anyPart is a part that is not known. It has to be taken for objects.
const anyPart = ""

// A span is a piece of a file.
type span struct{ from, to Position }

func spanOf(n ast.Node) span {
	return span{positionAt(n.Pos()), positionAt(n.End())}
}

func (s span) holds(p Position) bool {
	return p.File == s.from.File && p.Line >= s.from.Line && p.Line <= s.to.Line
}

// conditionalOf returns what a member of components that is in a comprehension
// adds.
func (x *index) conditionalOf(m member) conditional {
	out := conditional{component: m.name, beyondCR: x.beyondCR(m)}
	for _, g := range m.guards {
		out.guards = append(out.guards, spanOf(g))
	}
	eachMember(m.value, nil, func(part member) {
		switch {
		case part.name == "":
			out.parts = append(out.parts, anyPart)
		case isRegular(part.name):
			out.parts = append(out.parts, part.name)
		}
	})
	return out
}

// beyondCR reports whether the existence of a member rests on more than the
// custom resource.
func (x *index) beyondCR(m member) bool {
	r := &references{index: x, follow: true, following: map[ast.Node]bool{}}
	r.member(member{guards: m.guards, field: m.field})
	return slices.ContainsFunc(r.found, func(ref Reference) bool { return ref.Path[0] != "cr" })
}

// hold adds what an undecided comprehension would add to the components: whole
// ones as ones whose existence is not decided, and parts as incomplete ones. It
// returns faults when it cannot tell, because the names are computed, or because
// a comprehension is not undecided but wrong.
func (p *Program) hold(evaluated []Component, root, components cue.Value) ([]Component, Faults) {
	for _, v := range []cue.Value{root, components} {
		err := v.Err()
		if err == nil {
			continue
		}
		why, masked := ownFaults(v), false
		switch {
		case !cue.IsIncomplete(err) && len(why) > 0:
			return nil, why
		case len(why) == 0:
			// CUE does not report an undecided comprehension in a struct with a
			// faulty field, so that there may be one.
			why, masked = faultsOf(err), true
		}
		for _, c := range p.index.conditionals {
			at := c.undecidedBy(why, masked, p.index.conditionals)
			switch {
			case at < 0:
			case c.component == "":
				return nil, p.unlistable(why[at])
			default:
				f := why[at]
				if !masked {
					f.Path = "" // the root, or components as such
				}
				evaluated = p.holdOne(evaluated, c, f)
			}
		}
	}
	return evaluated, nil
}

// undecidedBy returns which of some faults leaves a conditional undecided, or -1.
func (c conditional) undecidedBy(faults Faults, masked bool, all []conditional) int {
	if masked {
		return map[bool]int{true: 0, false: -1}[c.beyondCR]
	}
	for i, f := range faults {
		inGuard := func(c conditional) bool {
			return slices.ContainsFunc(c.guards, func(s span) bool { return s.holds(f.Position) })
		}
		// A fault that is in no guard is in what some guard refers to.
		if inGuard(c) || !slices.ContainsFunc(all, inGuard) {
			return i
		}
	}
	return -1
}

// unlistable is the fault of a package that computes the names of components from
// what is not there yet.
func (p *Program) unlistable(why Fault) Faults {
	why = p.explained(why)
	why.Path = "components"
	why.Hint = "let the names of components depend on cr alone, and let when decide which of them there are"
	return Faults{why}
}

func (p *Program) holdOne(evaluated []Component, held conditional, missing Fault) []Component {
	why := p.explained(missing)
	for i := range evaluated {
		if c := &evaluated[i]; c.Name == held.component {
			p.missFrom(c, missing)
			for _, part := range held.parts {
				c.holdPart(part, why)
			}
			return evaluated
		}
	}
	c := Component{
		Name:      held.component,
		When:      Decision{Verdict: Unknown, Detail: why.at()},
		Edges:     p.index.edgesOf(held.component),
		Rendering: RenderedIncomplete,
		Missing:   []string{why.at()},
	}
	p.missFrom(&c, missing)
	return append(evaluated, c)
}

// holdParts says that a comprehension in a component is not decided.
func (p *Program) holdParts(c *Component, why Fault) {
	parts := p.index.conditionalParts[c.Name]
	if len(parts) == 0 {
		parts = []string{anyPart}
	}
	p.missFrom(c, why)
	why = p.explained(why)
	why.Path = ""
	for _, part := range parts {
		c.holdPart(part, why)
	}
}

// holdPart says that there may be more of a part of a component.
func (c *Component) holdPart(part string, why Fault) {
	unknown := Predicate{Name: part, Verdict: Unknown, Position: why.Position, Detail: why.Text()}
	switch part {
	case "requires":
		c.Requires = append(c.Requires, unknown)
	case "verify":
		c.Verify = append(c.Verify, unknown)
	case "failed":
		c.Failed = append(c.Failed, unknown)
	case "when":
		c.When = Decision{Verdict: Unknown, Detail: why.at()}
	case "outputs", "timeout":
		// What refers to them waits by itself.
	default:
		if !slices.Contains(c.Missing, why.at()) {
			c.Missing = append(c.Missing, why.at())
		}
		if c.Rendering == RenderedComplete {
			c.Rendering = RenderedIncomplete
		}
	}
}

// ownFaults returns what keeps a struct from being evaluated, as opposed to what
// is wrong with one of its fields: typically a comprehension in it that refers to
// what is not there yet.
func ownFaults(v cue.Value) Faults {
	err := v.Err()
	if err == nil || !v.Exists() {
		return nil
	}
	// An incomplete field does not make its struct incomplete, but a faulty one
	// makes it faulty. Its path does not always tell.
	if !cue.IsIncomplete(err) && hasFaultyField(v) {
		return nil
	}
	return faultsOf(err)
}

func hasFaultyField(v cue.Value) bool {
	it, err := v.Fields(cue.All())
	for err == nil && it.Next() {
		if err := it.Value().Err(); err != nil && !cue.IsIncomplete(err) {
			return true
		}
	}
	return false
}
