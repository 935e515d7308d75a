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
		r.gateExistence, r.gateFaults, r.gateEdges, r.gateRequirements, r.gateRendering,
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

func (r *run) gateEdges(c program.Component) (status.Component, bool) {
	for _, e := range c.Edges {
		if _, gone := r.excluded[e.To]; gone {
			continue // it is optional, or c would be excluded
		}
		up, known := r.outcomes[e.To]
		if !known {
			if e.Origin == program.Derived {
				continue // the rendering says what is missing
			}
			return failed(c.Name, status.ReasonInvalidPackage, fmt.Sprintf("it depends on %s, which is not a component (%s)", e.To, e.Position)), true
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
		if slices.ContainsFunc(c.Missing, func(m string) bool { return strings.Contains(m, "inputs."+name) }) {
			missing = append(missing, "input "+name+": "+r.unread[name])
		}
	}
	return waiting(c.Name, status.ReasonValue, "waiting for "+status.List(missing)), true
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }
