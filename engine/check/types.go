package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// Types returns what the complete Kubernetes types find wrong with a package, by
// position, beside what is known of it already: an evaluation with them finds that again.
//
// What only an evaluation with a custom resource shows is taken from the samples, as far
// as it does not depend on what they make up.
func Types(s *source.Snapshot, known program.Faults) program.Faults {
	complete, err := s.Complete()
	if err != nil {
		return program.Faults{{Message: err.Error()}}
	}
	p, found, err := program.Suspect(complete)
	if faults, ok := errors.AsType[program.Faults](err); ok {
		return without(faults, known)
	}
	if err != nil {
		return program.Faults{{Message: "with the complete Kubernetes types: " + err.Error()}}
	}
	found = append(found, faultsIn(p.Template(), p.TemplateHooks())...)
	for _, s := range samples(p) {
		for _, f := range faultsIn(s.rollout.Components, s.rollout.Hooks) {
			if p.OfThePackage(f) {
				found = append(found, f)
			}
		}
	}
	found = without(found, known)
	for i, f := range found {
		found[i].Hint = typeHint(p, f)
	}
	return merged(found)
}

// faultsIn returns what is wrong with the components and hooks of an evaluation.
func faultsIn(components []program.Component, hooks []program.Hook) program.Faults {
	var out program.Faults
	for _, c := range components {
		out = append(out, c.Faults...)
	}
	for _, h := range hooks {
		out = append(out, h.Component.Faults...)
	}
	return out
}

// without returns the faults that are about no field that a known fault is about.
func without(faults, known program.Faults) program.Faults {
	return slices.DeleteFunc(slices.Clone(faults), func(f program.Fault) bool {
		return slices.ContainsFunc(known, func(k program.Fault) bool {
			return k.Path == f.Path || k.Position == f.Position && k.Message == f.Message
		})
	})
}

// typeHint says which field was probably meant. There are too many to list them.
func typeHint(p *program.Program, f program.Fault) string {
	if !p.Unknown(f) {
		return f.Hint
	}
	if near, ok := p.SimilarField(f.Path); ok {
		return "did you mean " + near + "?"
	}
	return "its kind has no such field"
}

// merged returns each fault once that several places of a package share, such as two
// components that are made from one template.
func merged(faults program.Faults) program.Faults {
	var out program.Faults
	others := map[program.Fault][]string{}
	for _, f := range inOrderOfPlaces(faults) {
		i := slices.IndexFunc(out, func(o program.Fault) bool { return same(o, f) })
		switch {
		case i < 0:
			out = append(out, f)
		case out[i].Path != f.Path && rendered(f) && !slices.Contains(others[out[i]], f.Path):
			others[out[i]] = append(others[out[i]], f.Path)
		}
	}
	for i, f := range out {
		if n := len(others[f]); n > 0 {
			out[i].Hint = joinHints(f.Hint, alsoAt(others[f]))
		}
	}
	return out.Sorted()
}

// inOrderOfPlaces puts what is rendered before the definitions that it comes from.
func inOrderOfPlaces(faults program.Faults) program.Faults {
	out := slices.Clone(faults)
	slices.SortStableFunc(out, func(a, b program.Fault) int {
		switch {
		case rendered(a) == rendered(b):
			return strings.Compare(a.Path, b.Path)
		case rendered(a):
			return -1
		}
		return 1
	})
	return out
}

// rendered reports whether a fault is one of a component or hook.
func rendered(f program.Fault) bool {
	return strings.HasPrefix(f.Path, "components.") || strings.HasPrefix(f.Path, "hooks.")
}

// same reports whether two faults are of one field in one line of the text.
func same(a, b program.Fault) bool {
	if a.Path == b.Path && a.Message == b.Message {
		return true
	}
	return a.Position == b.Position && a.Position.File != "" && a.Message == b.Message && last(a.Path) == last(b.Path)
}

// last returns the last name of a path.
func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func alsoAt(paths []string) string {
	if len(paths) == 1 {
		return "also at " + paths[0]
	}
	return fmt.Sprintf("also at %s and %d more places", paths[0], len(paths)-1)
}

func joinHints(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
