package vet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// Types returns the faults that the complete Kubernetes types find in the package, by position, without
// those that are known already. The package may have other faults.
//
// It checks each object against the type of its kind, as the package alone has it and as the samples
// render it, and what the package reads of live objects and inputs. Other uses of the types, such as a template that nothing uses, are checked like stock
// cue vet does: by compiling the package with the complete types.
func (e *Examination) Types(known fault.Faults) fault.Faults {
	p := e.program
	complete, err := p.Snapshot().Complete()
	if err != nil {
		return fault.Faults{{Message: err.Error()}}
	}
	kinds := program.NewKinds(complete)
	found := append(p.Static().LiveFaults(kinds), p.TypeFaults(kinds, nil)...)
	for _, s := range e.samples() {
		found = append(found, beside(p.TypeFaults(kinds, &s.session), found)...)
	}
	found = slices.DeleteFunc(found, func(f fault.Fault) bool {
		return slices.ContainsFunc(known, func(k fault.Fault) bool { return k.Path == f.Path && k.Code == f.Code })
	})
	found = p.Shown(found...)
	if p.ImportsTypes() { // else it compiles to the same
		found = append(found, beside(compiled(complete), found, known)...)
	}
	return merged(found)
}

// compiled returns the faults of compiling a package with the complete types.
func compiled(complete *source.Snapshot) fault.Faults {
	p, found, err := program.LoadFaultyCheaply(complete)
	if faults, ok := errors.AsType[fault.Faults](err); ok {
		return faults
	}
	if err != nil {
		return fault.Faults{{Message: "with the complete Kubernetes types: " + err.Error()}}
	}
	found = p.Shown(found...)
	for i, f := range found {
		if near, ok := p.Static().Similar(f); ok {
			found[i].Hint = near
		}
	}
	return found
}

// beside returns the faults without those that others have for the same field or for a field around
// it: CUE reports a struct that is not allowed at its inner fields.
func beside(faults fault.Faults, others ...fault.Faults) fault.Faults {
	known := map[string]bool{}
	for _, o := range slices.Concat(others...) {
		known[o.Path] = true
		if rendered(o) {
			known[belowObjects(o.Path)] = true
			known[belowObjects(o.Path)+" "+o.Position.String()] = true
		}
	}
	delete(known, "")
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool {
		return known[f.Path] || within(f.Path, known) || !rendered(f) && inTemplate(f, known)
	})
}

// inTemplate reports whether a fault in a definition is known from an object that uses it.
func inTemplate(f fault.Fault, known map[string]bool) bool {
	below := belowObjects(f.Path)
	return below != "" && (known[below+" "+f.Position.String()] || within(below, known))
}

// within reports whether a path is below a known one.
func within(path string, known map[string]bool) bool {
	for at := len(path) - 1; at > 0; at-- {
		if (path[at] == '.' || path[at] == '[') && known[path[:at]] {
			return true
		}
	}
	return false
}

// belowObjects returns the part of a path from the object on, or "".
func belowObjects(path string) string {
	_, below, _ := strings.Cut(path, ".objects.")
	return below
}

// A site is what equal faults share: a field in a line of the text.
type site struct {
	position   fault.Position
	name, text string
}

// merged returns faults that several places of a package share only once, such as those of two
// components that use one template.
func merged(faults fault.Faults) fault.Faults {
	var out fault.Faults
	first := map[site]int{}
	others := map[int][]string{}
	seen := map[fault.Fault]bool{}
	for _, f := range faults {
		is := site{f.Position, last(f.Path), f.Message}
		i, known := first[is]
		switch {
		case !known || f.Position.File == "":
			first[is] = len(out)
			out = append(out, f)
		case out[i].Path != f.Path && rendered(f) && !seen[f]:
			others[i] = append(others[i], f.Path)
		}
		seen[f] = true
	}
	for i, paths := range others {
		out[i].Hint = strings.TrimPrefix(out[i].Hint+"; "+alsoAt(paths), "; ")
	}
	return out.Sorted()
}

// rendered reports whether a fault is in a component or hook.
func rendered(f fault.Fault) bool {
	return strings.HasPrefix(f.Path, "components.") || strings.HasPrefix(f.Path, "hooks.")
}

// last returns the last name of a path.
func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func alsoAt(paths []string) string {
	if len(paths) == 1 {
		return "also at " + paths[0]
	}
	return fmt.Sprintf("also at %s and %d more places", paths[0], len(paths)-1)
}
