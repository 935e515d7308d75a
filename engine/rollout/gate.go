package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// gate returns what keeps a component from being applied, if anything does. The order of the
// gates is that in which a person would ask: should it exist, is it valid, what does it wait
// for.
func (pr *progress) gate(c program.Component) (status.Component, bool) {
	return firstBlocking(c, pr.gateExistence, pr.gateFaults, pr.gateSpec, pr.gateEdges, pr.gateRequirements, pr.gateRendering)
}

// firstBlocking returns the outcome of the first gate that is closed, and whether there is one.
func firstBlocking(c program.Component, gates ...func(program.Component) (status.Component, bool)) (status.Component, bool) {
	for _, gate := range gates {
		if blocked, closed := gate(c); closed {
			return blocked, true
		}
	}
	return status.Component{}, false
}

func (pr *progress) gateExistence(c program.Component) (status.Component, bool) {
	if why, gone := pr.excluded[c.Name]; gone {
		return status.Component{Name: c.Name, State: status.Excluded, Reason: status.ReasonExcluded, Message: why}, true
	}
	switch c.When.Verdict {
	case program.True, program.False:
		return status.Component{}, false
	case program.Unknown:
		if c.When.Unset != "" {
			return unset(c.Name, "when: "+c.When.Detail, c.When.Unset), true
		}
		return status.Component{Name: c.Name, State: status.Held, Reason: status.ReasonUndecided, Message: "when: " + c.When.Detail}, true
	case program.Broken:
		return failed(c.Name, status.ReasonPredicateBroken, "when cannot be decided: "+c.When.Detail), true
	}
	return status.Component{}, false
}

// gateFaults blocks a component that is invalid or has an outcome already.
func (pr *progress) gateFaults(c program.Component) (status.Component, bool) {
	if c.Rendering == program.RenderedInvalid {
		return failed(c.Name, status.ReasonInvalidObject, joinLines(c.Faults.Error())), true
	}
	if o, ok := pr.outcomes[c.Name]; ok {
		return o, true
	}
	return status.Component{}, false
}

// gateSpec blocks a component that needs a field of the spec which is not set. That is a
// failure and no wait: a person has to set it.
func (pr *progress) gateSpec(c program.Component) (status.Component, bool) {
	if c.Rendering == program.RenderedIncomplete && len(c.Unset) > 0 {
		return unset(c.Name, status.List(c.Missing), c.Unset...), true
	}
	for _, p := range c.Requires {
		if p.Unset != "" {
			return unset(c.Name, "requires."+p.Name+": "+p.Explain(), p.Unset), true
		}
	}
	return status.Component{}, false
}

// unset is the outcome of a component that needs fields of the spec which are not set.
func unset(name, waits string, fields ...string) status.Component {
	return failed(name, status.ReasonFieldNotSet, fmt.Sprintf("waiting for %s; set %s, or let the package do without", waits, strings.Join(fields, " and ")))
}

// repairs reports whether the objects of a component that is not rolled out are repaired.
func repairs(blocked status.Component) bool {
	return blocked.State == status.Waiting || blocked.Reason == status.ReasonFieldNotSet
}

func (pr *progress) gateEdges(c program.Component) (status.Component, bool) {
	for _, e := range c.Edges {
		if _, gone := pr.excluded[e.To]; gone {
			continue // it is optional, or c would be excluded
		}
		up, known := pr.outcomes[e.To]
		if !known && e.Origin == program.Derived {
			continue // gateRendering names what is missing
		}
		if !known {
			return dependsOnNothing(c.Name, e), true
		}
		if up.State == status.Excluded {
			continue // its kind is not served and it is skipped, as if it did not exist
		}
		if e.Check != nil && e.Check.Verdict == program.Broken {
			return failed(c.Name, status.ReasonPredicateBroken, fmt.Sprintf("the check on %s cannot be decided: %s", e.To, e.Check.Explain())), true
		}
		if !pr.reached(up, e.Until) {
			return waiting(c.Name, status.ReasonDependency, fmt.Sprintf("waiting for %s to be %s: %s", e.To, e.Until, status.Shorten(pr.in.Redactor.Text(up.Message), status.MaxMessage))), true
		}
		if e.Check != nil && e.Check.Verdict != program.True {
			return waiting(c.Name, status.ReasonDependency, fmt.Sprintf("waiting for the check on %s: %s", e.To, e.Check.Explain())), true
		}
	}
	return status.Component{}, false
}

// dependsOnNothing is the outcome of a component that depends on one that does not exist.
func dependsOnNothing(name string, e program.Edge) status.Component {
	reason := status.ReasonInvalidPackage
	if e.Computed {
		reason = status.ReasonInvalidSpec
	}
	return failed(name, reason, fmt.Sprintf("it depends on %s, which is not a component (%s)", e.To, e.Position))
}

// reached reports whether a component is as far as an edge to it asks. A component that was
// applied and then failed was applied nevertheless.
func (pr *progress) reached(up status.Component, until program.Until) bool {
	switch until {
	case program.UntilVerified:
		return up.State == status.Verified
	case program.UntilApplied:
		return up.State == status.Verified || up.State == status.Applied || (up.State == status.Failed && pr.judged[up.Name])
	}
	return false
}

func (pr *progress) gateRequirements(c program.Component) (status.Component, bool) {
	for _, p := range c.Requires {
		switch p.Verdict {
		case program.True:
		case program.False, program.Unknown:
			return waiting(c.Name, status.ReasonRequirement, fmt.Sprintf("waiting for requires.%s: %s", p.Name, p.Explain())), true
		case program.Broken:
			return failed(c.Name, status.ReasonPredicateBroken, fmt.Sprintf("requires.%s cannot be decided: %s", p.Name, p.Explain())), true
		}
	}
	return status.Component{}, false
}

func (pr *progress) gateRendering(c program.Component) (status.Component, bool) {
	if c.Rendering != program.RenderedIncomplete {
		return status.Component{}, false
	}
	missing := slices.Clone(c.Missing)
	for _, name := range slices.Sorted(maps.Keys(pr.unread)) {
		if c.AwaitsInput(name) {
			missing = append(missing, "input "+name+": "+pr.unread[name])
		}
	}
	return waiting(c.Name, status.ReasonValue, "waiting for "+status.List(missing)), true
}

// joinLines returns a text of several lines as one, for a message.
func joinLines(s string) string { return strings.ReplaceAll(s, "\n", "; ") }

// waitsFor returns the components that keep one from being applied because they are not as far
// as its edges ask. The gate names the first; a person who looks for what a component blocks
// needs all.
func (pr *progress) waitsFor(c program.Component, o status.Component) []string {
	if o.Cause() != status.ReasonDependency {
		return nil
	}
	var out []string
	for _, e := range c.Edges {
		if up := pr.outcomes[e.To]; up.State != status.Excluded && !pr.passes(up, e) && !slices.Contains(out, e.To) {
			out = append(out, e.To)
		}
	}
	return out
}

// passes reports whether an edge lets its component be applied.
func (pr *progress) passes(up status.Component, e program.Edge) bool {
	return pr.reached(up, e.Until) && (e.Check == nil || e.Check.Verdict == program.True)
}
