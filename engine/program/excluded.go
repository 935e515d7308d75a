package program

import "slices"

// Excluded returns the components that should not exist, with the reason: those that are known
// to be excluded, those whose when is false, and those that need one of them. An optional edge
// excludes nothing, and a derived one only a component that misses what the excluded one would
// bring. The components have to be in order, dependencies first.
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
				out[c.Name] = "it depends on " + e.To + ", which is excluded" + e.Position.InBrackets()
				break
			}
		}
	}
	return out
}

// switchedOff returns the reason of a component whose when is false.
func switchedOff(c Component) string {
	if c.When.Detail == "" {
		return "disabled: when is false"
	}
	return "disabled: " + c.When.Detail
}

// needs reports whether a component cannot exist without the component that an edge leads to.
// Other missing values may still appear, so they only make it wait.
func (c Component) needs(e Edge) bool {
	if e.Origin == Derived {
		return slices.Contains(c.MissingFrom, e.To)
	}
	return !e.Optional
}
