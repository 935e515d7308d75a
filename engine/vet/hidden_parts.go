package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// hiddenParts warns of hidden components and definitions that nothing refers to, and of hidden dependencies: CUE leaves hidden fields
// out of what it evaluates to.
func hiddenParts(v *view) fault.Faults {
	var out fault.Faults
	warn := func(m syntax.Member, within, what string) {
		out = append(out, fault.Fault{
			Position: m.Position(), Path: within + "." + m.Name(),
			Message: "its name makes it hidden, so that it is no " + what,
			Hint:    "the name of a " + what + " begins with a letter",
		})
	}
	for _, m := range v.Syntax().UnusedHidden("components") {
		warn(m, "components", "component")
	}
	for _, c := range v.components() {
		for _, m := range v.Syntax().UnusedHidden("components", c, "dependsOn") {
			warn(m, joined("components", c, "dependsOn"), "dependency")
		}
	}
	return out
}
