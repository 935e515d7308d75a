package program

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// invalid returns the faults of the custom resource. It fills in the whole session, because the
// schema of the resource may refer to other parts, such as a limit in the configuration.
func (e *evaluator) invalid(filling map[string]any) fault.Faults {
	filling = maps.Clone(filling)
	var out fault.Faults
	// CUE reports some faults only if there are no others, so a user would get them one
	// after the other. Values that are known to be wrong are removed before the next round.
	for range maxRounds {
		fresh := 0
		for _, f := range e.crFaults(Lookup(e.compiled.fill(filling), "cr")) {
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

// maxRounds bounds the number of validations of one resource.
const maxRounds = 4

// crFaults returns the faults of an evaluated custom resource.
func (e *evaluator) crFaults(cr cue.Value) fault.Faults {
	err := cr.Validate(cue.Concrete(true))
	if err == nil {
		return nil
	}
	faults, schema := fault.FromCUE(err, cr), e.static.CRSchema()
	for i, f := range faults {
		// The user of the resource knows spec.replicas, not cr.spec.replicas.
		f.Path = strings.TrimPrefix(f.Path, "cr.")
		if name, known, ok := unknownField(schema, f); ok {
			f.Hint = HintAmong(name, known)
		}
		faults[i] = f
	}
	return faults
}

// without returns data without the value at a path. It copies the structs and lists that it
// changes. A path that cannot be followed changes nothing: CUE does not quote every label in the
// paths of its errors.
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
