package program

import (
	"fmt"
	"maps"
	"strings"

	"cuelang.org/go/cue"
)

// A Layer is one source of configuration, over the defaults in CUE.
type Layer struct {
	// Origin says where it comes from, such as ConfigMap default/settings.
	Origin string
	Values map[string]any
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
		below, isMap := v.(map[string]any)
		existing, both := into[k].(map[string]any)
		if isMap && both {
			existing = maps.Clone(existing)
			overlay(existing, below)
			into[k] = existing
			continue
		}
		into[k] = v
	}
}

// configFaults returns what contradicts the package in the configuration. Each
// fault names both places: the line of the package and the layer.
func (p *Program) configFaults(v cue.Value, layers []Layer) Faults {
	if len(layers) == 0 || !v.Exists() {
		return nil
	}
	faults := faultsOf(v.Validate())
	for i, f := range faults {
		path := strings.Split(strings.TrimPrefix(f.Path, "config."), ".")
		for _, l := range layers {
			if holds(l.Values, path) {
				faults[i].Message = fmt.Sprintf("%s (set by %s)", f.Message, l.Origin)
			}
		}
	}
	return faults
}

// holds reports whether a map has a value at a path, or on the way to it.
func holds(m map[string]any, path []string) bool {
	v, ok := m[path[0]]
	if !ok || len(path) == 1 {
		return ok
	}
	below, isMap := v.(map[string]any)
	return !isMap || holds(below, path[1:])
}

// Configurable reports whether the package takes configuration.
func (p *Program) Configurable() bool { return len(p.index.fields["config"]) > 0 }
