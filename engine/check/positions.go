package check

import (
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// positionOf returns where a component is written, as far as its objects show.
func positionOf(c rollout.ComponentPreview) fault.Position {
	for _, o := range c.Source.Objects {
		if !o.Position.IsZero() {
			return o.Position
		}
	}
	return fault.Position{}
}

// shown returns a fault as a person sees it. One that no object has a place for has that of the field that it is about:
// only now, because what is known without resources is told apart by it.
func (c *checker) shown(f fault.Fault) fault.Fault {
	out := c.program.Shown(f)[0]
	if out.Position.IsZero() {
		out.Position = c.program.Syntax().NearestPosition(strings.Split(out.Path, ".")...)
	}
	return out
}

// note notes where the objects of a component are written: a later state may render them no more, and be wrong about them.
func note(places map[cluster.Ref]fault.Position, c rollout.ComponentPreview) {
	for _, o := range c.Objects {
		if o.Manifest != nil && !o.Position.IsZero() {
			places[cluster.RefOf(o.Manifest).Identity()] = o.Position
		}
	}
}

// restless returns which object is still to be written, and where it is written in the package.
func (t *trial) restless() (at fault.Position, path string) {
	for _, c := range t.last.Components {
		for _, o := range c.Objects {
			if o.Action.Decision != "" && o.Action.Decision != ownership.Keep {
				return o.Position, "components." + c.Name + ".objects." + o.Object
			}
		}
	}
	return unready(t.program, t.last.Components), "components"
}

// unready returns where the first component is written that is not done: the predicate that is false, if it waits for one.
func unready(p *program.Program, components []rollout.ComponentPreview) fault.Position {
	for _, c := range components {
		if c.Done() || c.State == status.Excluded {
			continue
		}
		for _, condition := range slices.Concat(c.Source.Requires, c.Source.Verify) {
			if condition.Verdict == program.False && !condition.Position.IsZero() {
				return condition.Position
			}
		}
		if at := positionOf(c); !at.IsZero() {
			return at
		}
		return p.Syntax().NearestPosition("components", c.Name)
	}
	return p.Syntax().PositionOf("components")
}

// owned returns the objects in the inventory.
func (t *trial) owned() map[cluster.Ref]bool {
	out := map[cluster.Ref]bool{}
	for _, part := range t.world.Owned(t.ref) {
		for _, ref := range part.Objects {
			out[ref.Identity()] = true
		}
	}
	return out
}

// difference returns the first object that only one of two sets has, and what is wrong with it.
func difference(before, after map[cluster.Ref]bool) (ref cluster.Ref, text string) {
	texts := map[string]cluster.Ref{}
	for ref := range before {
		if !after[ref] {
			texts[ref.String()+" is missing"] = ref
		}
	}
	for ref := range after {
		if !before[ref] {
			texts[ref.String()+" is left"] = ref
		}
	}
	text = slices.Min(slices.Collect(maps.Keys(texts)))
	return texts[text], text
}
