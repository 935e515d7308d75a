package render

import (
	"fmt"

	"operetta.dev/engine/program"
)

// State is what becomes of a component.
type State string

// The states of a component.
const (
	// Rendered means that all objects are complete and wanted. The component may
	// still wait for others before it is applied.
	Rendered State = "Rendered"
	// Excluded means that the component should not exist.
	Excluded State = "Excluded"
	// Held means that it cannot be decided whether the component should exist: its
	// objects are neither created nor deleted.
	Held State = "Held"
	// Incomplete means that an object refers to what is not there yet.
	Incomplete State = "Incomplete"
	// Invalid means that an object is wrong, or when can never be decided, and so
	// nothing of the component is applied.
	Invalid State = "Invalid"
)

// A Component is a component of the package, and what becomes of it.
type Component struct {
	program.Component
	State State
	// Because says why it is not Rendered, with file:line.
	Because []string
	// Waits says what a Rendered component waits for before it is applied or
	// healthy, as far as the author's own conditions tell.
	Waits []string
}

// judge decides the state of each component. The components come dependencies
// first, so that what a component depends on is decided before it.
func judge(components []program.Component, live map[string]map[string]map[string]any, hidden map[string]string) []Component {
	decided := map[string]*Component{}
	excluded := program.Excluded(components, hidden)
	out := make([]Component, len(components))
	for i, c := range components {
		out[i] = Component{Component: c}
		// Whether it should exist comes before what it consists of: a fault in what
		// nobody asked for is no fault of this resource.
		if why, gone := excluded[c.Name]; gone {
			out[i].State, out[i].Because = Excluded, []string{why}
		} else {
			out[i].decide(decided)
		}
		decided[c.Name] = &out[i]
	}
	for i := range out {
		if out[i].State == Rendered {
			out[i].Waits = out[i].waits(decided, live)
		}
	}
	return out
}

// decide sets State and Because of a component that is not excluded.
func (c *Component) decide(decided map[string]*Component) {
	if c.When.Verdict != program.True {
		c.State, c.Because = Held, []string{"when cannot be decided: " + c.When.Detail}
		if c.When.Verdict == program.Broken {
			c.State = Invalid // what is there stays, but waiting does not help
		}
		return
	}
	for _, e := range c.Edges {
		if up := decided[e.To]; !e.Optional && up != nil && up.State == Held {
			c.State, c.Because = Held, []string{"it depends on " + e.To + ", which is held" + e.Position.Behind()}
			return
		}
	}
	c.decideRendering()
}

func (c *Component) decideRendering() {
	switch c.Rendering {
	case program.RenderedInvalid:
		c.State = Invalid
		for _, f := range c.Component.Faults {
			c.Because = append(c.Because, f.Error())
		}
	case program.RenderedIncomplete:
		c.State, c.Because = Incomplete, c.Missing
	default:
		c.State = Rendered
	}
}

// waits says what a rendered component waits for.
func (c *Component) waits(decided map[string]*Component, live map[string]map[string]map[string]any) []string {
	var out []string
	for _, e := range c.Edges {
		upstream := decided[e.To]
		if upstream == nil || upstream.State == Excluded || upstream.met(e.Until, live) {
			continue
		}
		out = append(out, fmt.Sprintf("for %s to be %s%s", e.To, e.Until, e.Position.Behind()))
	}
	for _, e := range c.Edges {
		if e.Check != nil && e.Check.Verdict != program.True {
			out = append(out, "for "+edgePath(c.Name, e)+".check: "+e.Check.Explain())
		}
	}
	for _, p := range c.Requires {
		if p.Verdict != program.True {
			out = append(out, "for requires."+p.Name+": "+p.Explain())
		}
	}
	// Conditions of health say nothing about what does not exist.
	if !c.exists(live) {
		return out
	}
	for _, p := range c.Verify {
		if p.Verdict != program.True {
			out = append(out, "for verify."+p.Name+": "+p.Explain())
		}
	}
	for _, p := range c.Failed {
		if p.Verdict == program.True {
			out = append(out, "no more: failed."+p.Name+" is true")
		}
	}
	return out
}

// met reports whether a component is as far as an edge to it awaits, as far as the
// author's conditions tell.
func (c *Component) met(until program.Until, live map[string]map[string]map[string]any) bool {
	if c.State != Rendered || !c.exists(live) {
		return false
	}
	if until == program.UntilApplied {
		return true
	}
	for _, p := range c.Verify {
		if p.Verdict != program.True {
			return false
		}
	}
	return true
}

// exists reports whether all objects are live.
func (c *Component) exists(live map[string]map[string]map[string]any) bool {
	for _, o := range c.Objects {
		if live[c.Name][o.Name] == nil {
			return false
		}
	}
	return true
}

// faults returns what is wrong with the package in this component.
func (c *Component) faults() program.Faults {
	var faults program.Faults
	if c.State == Invalid {
		faults = append(faults, c.Component.Faults...)
	}
	if c.When.Verdict == program.Broken {
		faults = append(faults, program.Fault{Path: "components." + c.Name + ".when", Message: c.When.Detail})
	}
	if c.State == Excluded {
		return faults
	}
	for _, e := range c.Edges {
		if e.Check != nil {
			faults = append(faults, broken(edgePath(c.Name, e)+".", *e.Check)...)
		}
	}
	faults = append(faults, broken("components."+c.Name+".requires.", c.Requires...)...)
	faults = append(faults, broken("components."+c.Name+".verify.", c.Verify...)...)
	return append(faults, broken("components."+c.Name+".failed.", c.Failed...)...)
}

// broken returns a fault for each predicate that can never be decided.
func broken(prefix string, predicates ...program.Predicate) program.Faults {
	var faults program.Faults
	for _, p := range predicates {
		if p.Verdict == program.Broken {
			faults = append(faults, program.Fault{Position: p.Position, Path: prefix + p.Name, Message: p.Source + " can never be decided: " + p.Detail})
		}
	}
	return faults
}

// duplicates returns a fault for each object that is rendered more than once: the
// two would overwrite each other for ever.
func duplicates(components []Component) program.Faults {
	type place struct{ path, at string }
	first := map[Identity]place{}
	var faults program.Faults
	for _, c := range components {
		if c.State != Rendered {
			continue
		}
		for _, o := range c.Objects {
			id, path := IdentityOf(o.Manifest), objectPath(c.Name, o.Name)
			other, seen := first[id]
			if !seen {
				first[id] = place{path, o.Position.Behind()}
				continue
			}
			faults = append(faults, program.Fault{
				Position: o.Position,
				Path:     path,
				Message:  fmt.Sprintf("the same object as %s%s: %s", other.path, other.at, id),
				Hint:     "give one of them another name",
			})
		}
	}
	return faults
}
