package rollout

import (
	"slices"

	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

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
