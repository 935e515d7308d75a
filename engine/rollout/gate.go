package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// gate returns what keeps a component from being applied, if anything does. The
// order of the questions is the order in which a person would ask them: should it
// exist, is it right, what does it wait for.
func (r *run) gate(c program.Component) (status.Component, bool) {
	for _, ask := range []func(program.Component) (status.Component, bool){
		r.gateExistence, r.gateFaults, r.gateSpec, r.gateEdges, r.gateRequirements, r.gateRendering,
	} {
		if blocked, ok := ask(c); ok {
			return blocked, true
		}
	}
	return status.Component{}, false
}

func (r *run) gateExistence(c program.Component) (status.Component, bool) {
	if why, gone := r.excluded[c.Name]; gone {
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

// gateFaults stops a component that is wrong, and one that was refused before.
func (r *run) gateFaults(c program.Component) (status.Component, bool) {
	if c.Rendering == program.RenderedInvalid {
		return failed(c.Name, status.ReasonInvalidObject, oneLine(c.Faults.Error())), true
	}
	if o, ok := r.outcomes[c.Name]; ok {
		return o, true
	}
	return status.Component{}, false
}

// gateSpec stops a component that needs a field of the spec which nobody has set: what it
// waits for does not come by itself.
func (r *run) gateSpec(c program.Component) (status.Component, bool) {
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

func (r *run) gateEdges(c program.Component) (status.Component, bool) {
	for _, e := range c.Edges {
		if _, gone := r.excluded[e.To]; gone {
			continue // it is optional, or c would be excluded
		}
		up, known := r.outcomes[e.To]
		if !known && e.Origin == program.Derived {
			continue // the rendering says what is missing
		}
		if !known {
			return dependsOnNothing(c.Name, e), true
		}
		if up.State == status.Excluded {
			continue // it was skipped, and counts as not being there
		}
		if e.Check != nil && e.Check.Verdict == program.Broken {
			return failed(c.Name, status.ReasonPredicateBroken, fmt.Sprintf("the check on %s cannot be decided: %s", e.To, e.Check.Explain())), true
		}
		if !r.reached(up, e.Until) {
			return waiting(c.Name, status.ReasonDependency, fmt.Sprintf("waiting for %s to be %s: %s", e.To, e.Until, status.Shorten(r.in.Redactor.Text(up.Message), status.MaxMessage))), true
		}
		if e.Check != nil && e.Check.Verdict != program.True {
			return waiting(c.Name, status.ReasonDependency, fmt.Sprintf("waiting for the check on %s: %s", e.To, e.Check.Explain())), true
		}
	}
	return status.Component{}, false
}

// dependsOnNothing says that an edge leads to no component.
func dependsOnNothing(name string, e program.Edge) status.Component {
	reason := status.ReasonInvalidPackage
	if e.Computed {
		reason = status.ReasonInvalidSpec
	}
	return failed(name, reason, fmt.Sprintf("it depends on %s, which is not a component (%s)", e.To, e.Position))
}

// reached reports whether a component is as far as an edge to it asks. One that was
// applied and then turned out to be unhealthy was applied nevertheless.
func (r *run) reached(up status.Component, until program.Until) bool {
	switch until {
	case program.UntilVerified:
		return up.State == status.Verified
	case program.UntilApplied:
		return up.State == status.Verified || up.State == status.Applied || (up.State == status.Failed && r.judged[up.Name])
	}
	return false
}

func (r *run) gateRequirements(c program.Component) (status.Component, bool) {
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

func (r *run) gateRendering(c program.Component) (status.Component, bool) {
	if c.Rendering != program.RenderedIncomplete {
		return status.Component{}, false
	}
	missing := slices.Clone(c.Missing)
	for _, name := range slices.Sorted(maps.Keys(r.unread)) {
		if c.AwaitsInput(name) {
			missing = append(missing, "input "+name+": "+r.unread[name])
		}
	}
	return waiting(c.Name, status.ReasonValue, "waiting for "+status.List(missing)), true
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }

// waitsFor returns the components that are not as far as the edges of one ask, which
// has not been applied for that reason. The gate names the first; a person who wants
// to know what a component blocks needs them all.
func (r *run) waitsFor(c program.Component, o status.Component) []string {
	if o.Cause() != status.ReasonDependency {
		return nil
	}
	var out []string
	for _, e := range c.Edges {
		up, known := r.outcomes[e.To]
		_, gone := r.excluded[e.To]
		if known && !gone && up.State != status.Excluded && !r.passes(up, e) && !slices.Contains(out, e.To) {
			out = append(out, e.To)
		}
	}
	return out
}

// passes reports whether an edge lets its component be applied.
func (r *run) passes(up status.Component, e program.Edge) bool {
	return r.reached(up, e.Until) && (e.Check == nil || e.Check.Verdict == program.True)
}
