package program

import (
	"fmt"
	"maps"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// A Layer is one source of configuration, over the defaults in CUE.
type Layer struct {
	// Origin says where it comes from, such as ConfigMap default/settings.
	Origin string
	Values map[string]any
	// Tenant says that whoever may write the custom resource has written it. It cannot
	// set what is marked as the administrator's.
	Tenant bool
}

// overlaid returns a map with the leaves of another one over its own.
func overlaid(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for k, v := range over {
		inner, isMap := v.(map[string]any)
		if was, both := out[k].(map[string]any); both && isMap {
			v = overlaid(was, inner)
		}
		out[k] = v
	}
	return out
}

// configFaults returns what contradicts the package in the configuration. Each
// fault names both places: the line of the package and the layer.
func (p *Program) configFaults(v cue.Value, layers []Layer) fault.Faults {
	if len(layers) == 0 {
		return nil
	}
	if !p.configurable {
		return fault.Faults{{Path: "config", Message: fmt.Sprintf("the package takes no configuration (set by %s)", strings.Join(setBy(layers, nil), " and "))}}
	}
	if faults := p.lockedFaults(layers); len(faults) > 0 {
		return faults
	}
	faults := fault.Of(v.Validate(), v)
	for i, f := range faults {
		path := below(f.Path)
		by := setBy(layers, path)
		if f.Code == fault.UnknownField {
			faults[i].Position, faults[i].Hint = p.index.PositionOf("config"), p.configHint(path)
		} else if len(by) > 0 {
			by = by[len(by)-1:] // the strongest layer
		}
		if len(by) > 0 {
			faults[i].Message = fmt.Sprintf("%s (set by %s)", f.Message, strings.Join(by, " and "))
		}
	}
	return faults
}

// below returns the names that a path has below its root, up to the first that is no
// name.
func below(path string) []string {
	var out []string
	for i, sel := range cue.ParsePath(path).Selectors() {
		if i == 0 {
			continue
		}
		if sel.LabelType() != cue.StringLabel {
			break
		}
		out = append(out, sel.Unquoted())
	}
	return out
}

// setBy returns the origins of the layers that have a value at a path.
func setBy(layers []Layer, path []string) []string {
	var out []string
	for _, l := range layers {
		if holds(l.Values, path) {
			out = append(out, l.Origin)
		}
	}
	return out
}

// configHint says which keys there are beside one that the package does not declare.
func (p *Program) configHint(path []string) string {
	last := len(path) - 1
	if last < 0 {
		return ""
	}
	known := fieldNames(lookup(p.ConfigSchema(), path[:last]...))
	if len(known) == 0 {
		return "nothing can be set there"
	}
	hint := "there are " + strings.Join(known, ", ")
	if near, ok := Nearest(path[last], known); ok {
		hint = didYouMean(near) + " " + hint
	}
	return hint
}

// holds reports whether a map has a value at a path, or on the way to it.
func holds(m map[string]any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	v, ok := m[path[0]]
	if !ok {
		return false
	}
	inner, isMap := v.(map[string]any)
	return !isMap || holds(inner, path[1:])
}
