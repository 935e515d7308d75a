package check

import (
	"context"
	"maps"
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

// maxSmaller is how often a fault is rendered with fewer live objects and fields to show it with the fewest.
const maxSmaller = 300

// smallestLive returns the live objects that a fault needs, with the fields that it needs: without any more of them,
// render does not show it. It returns all of them if render does not show the fault even with all of them, because
// the fault takes more than one state. When the time runs out, it returns the smallest set found so far.
func (c *checker) smallestLive(ctx context.Context, resource map[string]any, p problem) []map[string]any {
	left := maxSmaller
	over := func() bool { return left <= 0 }
	shows := func(live []map[string]any) bool {
		if c.options.enough() || ctx.Err() != nil {
			left = 0
		}
		if over() {
			return false
		}
		left--
		return showsFault(ctx, c.program, resource, live, p.fault)
	}
	if len(p.live) == 0 || !shows(p.live) {
		return p.live
	}
	s := minimizer{over}
	live := slices.Clone(fewest(s, p.live, shows)) // what was found keeps its own
	for i := range live {
		live[i] = s.fewestFields(live[i], identifying, func(object map[string]any) bool {
			all := slices.Clone(live)
			all[i] = object
			return shows(all)
		})
	}
	return live
}

// minimizer looks for what is smaller and shows the same, until over says that there is no more time: to go on would cost
// more than the renderings, if something has thousands of fields.
type minimizer struct{ over func() bool }

// showsFault reports whether render shows a fault for a resource with some live objects.
func showsFault(ctx context.Context, p *program.Program, resource map[string]any, live []map[string]any, want fault.Fault) bool {
	out, err := render.Render(ctx, p, render.Input{CR: resource, Manifests: live})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(out.Faults, func(f fault.Fault) bool {
		return f.Path == want.Path && f.Code == want.Code && f.Message == want.Message && (f.Position == want.Position || f.Position.IsZero() || want.Position.IsZero())
	})
}

// fewest returns as few of some items as still show something: halves are left out first, then quarters, and so on.
func fewest[T any](s minimizer, items []T, shows func([]T) bool) []T {
	for size := len(items); size > 0; size /= 2 {
		for from := 0; from < len(items) && !s.over(); {
			without := slices.Concat(items[:from], items[min(from+size, len(items)):])
			if shows(without) {
				items = without
				continue
			}
			from += size
		}
	}
	return items
}

// fields are the names of fields that stay, with those below each.
type fields map[string]fields

// identifying are the fields without which there is no object.
var identifying = fields{"apiVersion": nil, "kind": nil, "metadata": {"name": nil, "namespace": nil}}

// fewestFields returns a map with as few fields as still show something, at any depth.
func (s minimizer) fewestFields(m map[string]any, keep fields, shows func(map[string]any) bool) map[string]any {
	var removable []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, stays := keep[name]; !stays {
			removable = append(removable, name)
		}
	}
	with := func(names []string) map[string]any {
		out := map[string]any{}
		for name, value := range m {
			if _, stays := keep[name]; stays {
				out[name] = value
			}
		}
		for _, name := range names {
			out[name] = m[name]
		}
		return out
	}
	out := with(fewest(s, removable, func(names []string) bool { return shows(with(names)) }))
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if s.over() {
			return out
		}
		out[name] = s.fewestParts(out[name], keep[name], func(value any) bool {
			changed := maps.Clone(out)
			changed[name] = value
			return shows(changed)
		})
	}
	return out
}

// fewestParts is fewestFields for any value.
func (s minimizer) fewestParts(value any, keep fields, shows func(any) bool) any {
	switch v := value.(type) {
	case map[string]any:
		return s.fewestFields(v, keep, func(m map[string]any) bool { return shows(m) })
	case []any:
		items := slices.Clone(fewest(s, v, func(items []any) bool { return shows(items) }))
		for i := range items {
			if s.over() {
				return items
			}
			items[i] = s.fewestParts(items[i], nil, func(item any) bool {
				changed := slices.Clone(items)
				changed[i] = item
				return shows(changed)
			})
		}
		return items
	}
	return value
}
