package vet

import (
	"fmt"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// selfReferences finds values that are made of themselves, mostly because a field has the name of a variable.
func selfReferences(v *view) fault.Faults {
	var out fault.Faults
	for _, r := range v.Syntax().SelfReferences() {
		switch {
		case v.isEvaluated(r.Position):
			continue
		case !r.Variable.IsZero():
			out = append(out, fault.Fault{
				Position: r.Position,
				Message:  fmt.Sprintf("%s means the field that it is written in, and not the variable of line %d", r.Name, r.Variable.Line),
				Hint:     fmt.Sprintf("quote the label of the field, as in %q: ...", r.Name),
			})
			continue
		case r.IsWhole && v.hasValue(r.Path):
			continue
		}
		out = append(out, fault.Fault{
			Position: r.Position,
			Message:  fmt.Sprintf("%s means the field that it is written in, which has no other value", r.Name),
			Hint:     v.meant(r.Name),
		})
	}
	return out
}

// hasValue reports whether a field that refers to itself may have a value from another place. It is not known of a field that
// is in no object, nor of one that the text has several times: the others may rest on what only a cluster has.
func (v *view) hasValue(path []string) bool {
	if len(path) < 2 || path[0] != "components" && path[0] != "hooks" || v.Syntax().Written(path) > 1 {
		return true
	}
	for _, s := range v.samples {
		at := v.FillSession(s.session).LookupPath(cue.ParsePath(joined(path...)))
		if _, defaults := at.Default(); !at.Exists() || at.Err() != nil || at.IsConcrete() || defaults {
			return true
		}
	}
	return len(v.samples) == 0
}

// meant returns what to write in place of a name that means the field that it is written in.
func (v *view) meant(name string) string {
	if fieldOf(v.CRSchema(), "spec").LookupPath(cue.MakePath(cue.Str(name).Optional())).Exists() {
		return fmt.Sprintf("write cr.spec.%s; %s", name, program.ClosestNameHint)
	}
	return program.ClosestNameHint
}
