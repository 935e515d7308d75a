package program

import "slices"

// Excluded returns why components should not exist, by their names: those that are
// known to be excluded, those whose when is false, and those that need one of them. An
// optional edge needs nothing, and a derived one only what the rendering misses. The
// components come dependencies first.
func Excluded(components []Component, known map[string]string) map[string]string {
	out := map[string]string{}
	for _, c := range components {
		if why, ok := known[c.Name]; ok {
			out[c.Name] = why
			continue
		}
		if c.When.Verdict == False {
			out[c.Name] = switchedOff(c)
			continue
		}
		for _, e := range c.Edges {
			if _, gone := out[e.To]; gone && c.needs(e) {
				out[c.Name] = "it depends on " + e.To + ", which is excluded" + e.Position.Behind()
				break
			}
		}
	}
	return out
}

// switchedOff says why a component should not exist.
func switchedOff(c Component) string {
	if c.When.Detail == "" {
		return "when is false"
	}
	return "when is false: " + c.When.Detail
}

// needs reports whether a component cannot exist without the one that an edge leads
// to. What else it misses does not matter: that may come, and what waits is kept.
func (c Component) needs(e Edge) bool {
	if e.Origin == Derived {
		return slices.Contains(c.MissingFrom, e.To)
	}
	return !e.Optional
}
