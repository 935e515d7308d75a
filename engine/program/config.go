package program

import (
	"fmt"
	"maps"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A Layer is one source of configuration, over the defaults in CUE.
type Layer struct {
	// Origin is its source, for messages, such as ConfigMap default/settings.
	Origin string
	Values map[string]any
	// Tenant is true for the layer that comes from the custom resource. It cannot set the
	// fields that are marked as the administrator's.
	Tenant bool
}

// A Config is the configuration that a package takes.
type Config struct {
	compiled compiled
	index    *syntax.Index
	// configurable is true if the package has a config.
	configurable bool
	// locked are the fields that only the administrator sets.
	locked *locked
}

func configOf(static *Static, inst *build.Instance) *Config {
	out := &Config{compiled: static.compiled, index: static.index, configurable: Lookup(static.value, "config").Exists()}
	out.locked = out.readLocked(inst)
	return out
}

// Schema returns the schema of the configuration, which may not exist.
func (c *Config) Schema() cue.Value { return Lookup(c.compiled.fill(nil), "config") }

// Locked reports whether only the administrator sets a field.
func (c *Config) Locked(path []string) bool {
	l := c.locked
	for _, name := range path {
		if l == nil || l.all {
			break
		}
		if next := l.fields[name]; next != nil {
			l = next
		} else {
			l = l.others
		}
	}
	return l != nil && l.all
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

// faults returns where the configuration contradicts the package. Each fault names the
// line of the package and the layer.
func (c *Config) faults(v cue.Value, layers []Layer) fault.Faults {
	if len(layers) == 0 {
		return nil
	}
	if !c.configurable {
		return fault.Faults{{Path: "config", Message: fmt.Sprintf("the package takes no configuration (set by %s)", strings.Join(setBy(layers, nil), " and "))}}
	}
	if faults := c.lockedFaults(layers); len(faults) > 0 {
		return faults
	}
	faults := fault.FromCUE(v.Validate(), v)
	for i, f := range faults {
		path := below(f.Path)
		by := setBy(layers, path)
		if f.Code == fault.UnknownField {
			faults[i].Position, faults[i].Hint = c.index.PositionOf("config"), c.hint(path)
		} else if len(by) > 0 {
			by = by[len(by)-1:] // the strongest layer
		}
		if len(by) > 0 {
			faults[i].Message = fmt.Sprintf("%s (set by %s)", f.Message, strings.Join(by, " and "))
		}
	}
	return faults
}

// below returns the field names of a path after its first one, up to the first index.
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

// hint returns the keys that the package declares beside an unknown one.
func (c *Config) hint(path []string) string {
	last := len(path) - 1
	if last < 0 {
		return ""
	}
	known := FieldNames(Lookup(c.Schema(), path[:last]...))
	if len(known) == 0 {
		return "nothing can be set there"
	}
	hint := "there are " + strings.Join(known, ", ")
	if near, ok := ClosestName(path[last], known); ok {
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
