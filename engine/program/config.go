package program

import (
	"fmt"
	"maps"
	"slices"
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

// merged returns the layers as one value, later ones over earlier ones.
func merged(layers []Layer) map[string]any {
	out := map[string]any{}
	for _, l := range layers {
		overlay(out, l.Values)
	}
	return out
}

// overlay writes the leaves of one map over another.
func overlay(into, over map[string]any) {
	for k, v := range over {
		inner, isMap := v.(map[string]any)
		existing, both := into[k].(map[string]any)
		if isMap && both {
			existing = maps.Clone(existing)
			overlay(existing, inner)
			into[k] = existing
			continue
		}
		into[k] = v
	}
}

// configFaults returns what contradicts the package in the configuration. Each
// fault names both places: the line of the package and the layer.
func (p *Program) configFaults(v cue.Value, layers []Layer) fault.Faults {
	if len(layers) == 0 {
		return nil
	}
	if !p.configurable {
		return fault.Faults{{Path: "config", Message: fmt.Sprintf("the package takes no configuration (set by %s)", origins(layers, nil))}}
	}
	if faults := p.lockedFaults(layers); len(faults) > 0 {
		return faults
	}
	faults := fault.Of(v.Validate(), v)
	for i, f := range faults {
		path := below(f.Path)
		from := layers
		if f.Code == fault.UnknownField {
			faults[i].Position, faults[i].Hint = p.index.PositionOf("config"), p.configHint(path)
		} else if j := lastThatHolds(layers, path); j >= 0 {
			from = layers[j : j+1] // it is over the others
		}
		if by := origins(from, path); by != "" {
			faults[i].Message = fmt.Sprintf("%s (set by %s)", f.Message, by)
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

// lastThatHolds returns the strongest layer that has a value at a path, or -1.
func lastThatHolds(layers []Layer, path []string) int {
	for i, layer := range slices.Backward(layers) {
		if holds(layer.Values, path) {
			return i
		}
	}
	return -1
}

// origins says which layers have a value at a path.
func origins(layers []Layer, path []string) string {
	var out []string
	for _, l := range layers {
		if holds(l.Values, path) {
			out = append(out, l.Origin)
		}
	}
	return strings.Join(out, " and ")
}

// configHint says which keys there are beside one that the package does not declare.
func (p *Program) configHint(path []string) string {
	last := len(path) - 1
	if last < 0 {
		return ""
	}
	around := p.ConfigSchema()
	for _, name := range path[:last] {
		around = around.LookupPath(cue.MakePath(cue.Str(name)))
	}
	known := fieldNames(around)
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
