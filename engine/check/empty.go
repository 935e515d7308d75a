package check

import (
	"operetta.dev/engine/program"
)

// components refuses a package without a component: its resources would be Ready
// at once, with nothing behind them. Most often a file is missing.
func components(v *view) program.Faults {
	names, open := v.Names("components")
	if len(names) > 0 || (open && len(v.PositionOf("components").File) > 0) {
		return nil
	}
	return program.Faults{{
		Position: v.PositionOf("kind"),
		Path:     "components",
		Message:  "the package has no components",
		Hint:     "write components: <name>: objects: <name>: {...}",
	}}
}
