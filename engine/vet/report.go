package vet

import (
	"slices"
	"strings"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// The hints of a report. Those about what does not translate end with the advice of its reason.
const (
	hintDeciding = "each value has a template of its own: that is cheap for a boolean or a few values; for a number or a text, decide by a condition over cr, live or inputs themselves, such as if cr.spec.size > 3, or use its value rather than whether it is one of some"
	hintPinned   = "it is evaluated without CUE only for values that were seen before; "
	hintByCUE    = "it is evaluated by CUE; "
)

// Report returns what does not translate to a template, or only for one value at a time, by position. It
// compiles custom resources that are made up from the schema, so that it costs seconds, and says nothing
// of what only other resources render.
func Report(p *program.Program) fault.Faults {
	var out fault.Faults
	seen := map[string]bool{}
	add := func(f fault.Fault) {
		if key := f.Position.String() + f.Path; !seen[key] {
			seen[key] = true
			out = append(out, f)
		}
	}
	for _, r := range p.Syntax().Deciding() {
		if len(r.Path) > 2 && slices.Contains([]string{"cr", "live", "inputs"}, r.Path[0]) {
			add(fault.Fault{Position: r.Position, Path: r.String(), Message: "its value decides about the form of what is rendered", Hint: hintDeciding})
		}
	}
	c := compile.New(p)
	for _, s := range samples(p) {
		r := c.Compile(s.session, c.Pins())
		hint := hintPinned
		if r.Template == nil {
			hint = hintByCUE
		}
		for _, why := range r.Untranslated {
			add(fault.Fault{Position: why.Position, Path: strings.TrimPrefix(why.Path, "components."), Message: "it does not translate: " + why.Message, Hint: hint + why.Hint})
		}
	}
	return out.Sorted()
}
