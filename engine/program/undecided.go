package program

import (
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A comprehensionState is the state of the comprehensions in a struct.
type comprehensionState string

const (
	// allDecided: they add nothing more.
	allDecided comprehensionState = "Decided"
	// someUndecided: one of them waits for a field that does not exist yet.
	someUndecided comprehensionState = "Undecided"
	// masked: a field of the struct is faulty. CUE reports no undecided comprehension beside
	// one, so there may be one.
	masked comprehensionState = "Masked"
	// wrong: one of them can never be decided.
	wrong comprehensionState = "Wrong"
)

// comprehensionsOf returns the state of the comprehensions in a struct, and its reasons.
func comprehensionsOf(v cue.Value) (comprehensionState, fault.Faults) {
	if !v.Exists() || v.Err() == nil {
		return allDecided, nil
	}
	switch why := ownFaults(v); {
	case len(why) == 0:
		return masked, fault.FromCUE(v.Err(), v)
	case !cue.IsIncomplete(v.Err()):
		return wrong, why
	default:
		return someUndecided, why
	}
}

// hold adds the components and parts that undecided comprehensions may add: a component whose
// existence is undecided, or an incomplete part. It returns faults if the names of the
// components are computed, or if a comprehension is wrong instead of undecided.
func (e *evaluator) hold(evaluated []Component, components cue.Value) ([]Component, fault.Faults) {
	if is, why := comprehensionsOf(components); is == someUndecided {
		if at := slices.IndexFunc(why, func(f fault.Fault) bool { return e.index.Hides(f.Position) }); at >= 0 {
			return nil, e.unlistable(why[at])
		}
	}
	beside := slices.Concat(e.index.Conditionals(), e.index.RootGuards())
	for _, v := range []cue.Value{e.root, components} {
		is, why := comprehensionsOf(v)
		switch is {
		case allDecided:
			continue
		case wrong:
			return nil, why
		case someUndecided, masked:
		}
		for _, c := range e.index.Conditionals() {
			at := undecidedBy(c, why, is, beside)
			switch {
			case at < 0:
			case c.Component == "":
				return nil, e.unlistable(why[at])
			default:
				evaluated = e.holdOne(evaluated, c, withoutPath(why[at], is))
			}
		}
	}
	return evaluated, nil
}

// withoutPath returns the reason of a hold without its path, unless that is the path of a faulty
// field. The path of the struct itself is of no use to a person.
func withoutPath(why fault.Fault, is comprehensionState) fault.Fault {
	if is != masked {
		why.Path = ""
	}
	return why
}

// undecidedBy returns the index of the fault that leaves a conditional undecided, or -1. A fault
// in the guard of another conditional beside it does not count.
func undecidedBy(c syntax.Conditional, faults fault.Faults, is comprehensionState, beside []syntax.Conditional) int {
	if is == masked {
		return map[bool]int{true: 0, false: -1}[c.BeyondCR]
	}
	for i, f := range faults {
		// A fault outside all guards is in a value that some guard refers to.
		if c.GuardedAt(f.Position) || !slices.ContainsFunc(beside, func(c syntax.Conditional) bool { return c.GuardedAt(f.Position) }) {
			return i
		}
	}
	return -1
}

// unlistable is the fault of a package that computes the names of components from fields that do
// not exist yet.
func (e *evaluator) unlistable(why fault.Fault) fault.Faults {
	why = e.explained(why)
	why.Path = "components"
	why.Hint = "let the names of components depend on cr alone, and let when decide which of them there are"
	return fault.Faults{why}
}

// holdOne adds what one undecided comprehension may add: parts of a component that exists, or
// else a component whose existence is undecided.
func (e *evaluator) holdOne(evaluated []Component, held syntax.Conditional, missing fault.Fault) []Component {
	why := e.explained(missing)
	for i := range evaluated {
		if c := &evaluated[i]; c.Name == held.Component {
			e.missFrom(c, missing)
			for _, part := range held.Parts {
				e.holdPart(c, part, missing)
			}
			return evaluated
		}
	}
	c := Component{
		Name:      held.Component,
		When:      WhenResult{Verdict: Unknown, Detail: why.Located(), Absent: e.absent(missing)},
		Edges:     derivedEdges(e.index, held.Component),
		Rendering: RenderedIncomplete,
	}
	c.await(why)
	e.missFrom(&c, missing)
	c.noteAbsent(c.When.Absent)
	return append(evaluated, c)
}

// holdParts marks the parts that an undecided comprehension in the component may add to.
func (c *componentEvaluator) holdParts(why fault.Fault) {
	parts := c.index.ConditionalParts(c.out.Name)
	if len(parts) == 0 {
		parts = []string{syntax.AnyPart}
	}
	c.missFrom(&c.out, why)
	for _, part := range parts {
		c.holdPart(&c.out, part, withoutPath(why, someUndecided))
	}
}

// holdPart marks a part of a component as incomplete.
func (e *evaluator) holdPart(c *Component, part string, missing fault.Fault) {
	why, absent := e.explained(missing), e.absent(missing)
	unknown := Predicate{Name: part, Verdict: Unknown, Position: why.Position, Absent: absent, Detail: why.Text()}
	switch part {
	case "requires":
		c.Requires = append(c.Requires, unknown)
	case "verify":
		c.Verify = append(c.Verify, unknown)
	case "failed":
		c.Failed = append(c.Failed, unknown)
	case "when":
		c.When = WhenResult{Verdict: Unknown, Detail: why.Located(), Absent: absent}
	case "outputs", "timeout":
		// What refers to them waits by itself.
	default:
		c.await(why)
		c.noteAbsent(absent)
		if c.Rendering == RenderedComplete {
			c.Rendering = RenderedIncomplete
		}
	}
}

// ownFaults returns the faults of a struct itself, as opposed to those of its fields: typically
// a comprehension in it that refers to a field that does not exist yet.
func ownFaults(v cue.Value) fault.Faults {
	err := v.Err()
	if err == nil || !v.Exists() {
		return nil
	}
	// An incomplete field does not make its struct incomplete, but a faulty one
	// makes it faulty. The path of the error does not always show which it is.
	if !cue.IsIncomplete(err) && hasFaultyField(v) {
		return nil
	}
	return fault.FromCUE(err, v)
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
