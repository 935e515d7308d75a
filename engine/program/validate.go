package program

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// invalid returns what is wrong with the custom resource in what is filled into the
// package: its schema may refer to the rest, such as a limit in the configuration.
func (p *Program) invalid(filling map[string]any) fault.Faults {
	filling = maps.Clone(filling)
	var out fault.Faults
	// CUE reports some faults only where there are no others, so that a user would
	// get them one after the other. What is known to be wrong is taken out.
	for range maxRounds {
		fresh := 0
		for _, f := range p.crFaults(p.fill(filling).LookupPath(crPath)) {
			known := slices.ContainsFunc(out, func(o fault.Fault) bool { return o.Path == f.Path })
			if !known {
				out = append(out, f)
				fresh++
			}
			filling["cr"] = without(filling["cr"], cue.ParsePath(f.Path).Selectors())
		}
		if fresh == 0 {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b fault.Fault) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// maxRounds bounds how often a faulty resource is validated.
const maxRounds = 4

// crFaults returns what is wrong with an evaluated custom resource.
func (p *Program) crFaults(cr cue.Value) fault.Faults {
	err := cr.Validate(cue.Concrete(true))
	if err == nil {
		return nil
	}
	faults := fault.Of(err, cr)
	for i, f := range faults {
		// The user of the resource knows spec.replicas, not cr.spec.replicas.
		f.Path = strings.TrimPrefix(f.Path, "cr.")
		if sels := cue.ParsePath(f.Path).Selectors(); f.Code == fault.UnknownField && len(sels) > 0 && sels[len(sels)-1].LabelType() == cue.StringLabel {
			last := len(sels) - 1
			beside := p.CRSchema().LookupPath(cue.MakePath(sels[:last]...))
			f.Hint = HintAmong(sels[last].Unquoted(), fieldNames(beside))
		}
		faults[i] = f
	}
	return faults
}

// without returns data without the value at a path. It copies what it changes. A path that is none
// leaves the data as they are: CUE does not quote every name as it reads it.
func without(data any, path []cue.Selector) any {
	if len(path) == 0 {
		return data
	}
	switch v := data.(type) {
	case map[string]any:
		if path[0].LabelType() != cue.StringLabel {
			return v
		}
		key := path[0].Unquoted()
		inner, ok := v[key]
		if !ok {
			return v
		}
		out := maps.Clone(v)
		_, list := inner.([]any)
		if len(path) == 1 || list && len(path) == 2 {
			// Without one of its elements a list would be another one.
			delete(out, key)
			return out
		}
		out[key] = without(inner, path[1:])
		return out
	case []any:
		if path[0].LabelType() != cue.IndexLabel || path[0].Index() >= len(v) {
			return v
		}
		i := path[0].Index()
		out := slices.Clone(v)
		out[i] = without(v[i], path[1:])
		return out
	}
	return data
}
