package check

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// reached finds the smallest resource with which the package comes to the place of each known fault. Nothing is said of a place
// to which no case came.
func (c *checker) reached(ctx context.Context) error {
	r := &placeSearch{checker: c, types: map[int]fault.Faults{}}
	for _, known := range c.options.Known[:min(len(c.options.Known), maxCounterexamples)] {
		at, comes, over := r.first(known)
		if over {
			return nil
		}
		if at < 0 {
			continue
		}
		given := c.ended[at].given
		s, _, err := c.smallest(c.ended[at].selection, func(simpler selection) (bool, error) {
			out, err := c.try(ctx, simpler, true)
			if err != nil || out.refused || !comes(known, r.typesOf(out.settled), out.settled) {
				return false, err
			}
			given = out.given
			return true, nil
		})
		if err != nil {
			return err
		}
		c.report.Reached = append(c.report.Reached, Counterexample{Fault: known, Resource: c.make(s).resource, Live: given})
	}
	return nil
}

// A placeSearch looks for cases that come to a place.
type placeSearch struct {
	*checker

	// types are the faults that the types find in a case, by number.
	types map[int]fault.Faults
}

// A reachesPlace reports whether a session comes to the place of a fault, given what the types find in it.
type reachesPlace func(known fault.Fault, types fault.Faults, s program.Session) bool

// first returns the first case that comes to the place of a fault, or -1, and what tells that. A fault that neither the types find in any case, nor a read
// of a live object, is one of the text: a case that renders what it is about comes to it.
func (r *placeSearch) first(known fault.Fault) (at int, comes reachesPlace, over bool) {
	for _, comes := range []reachesPlace{r.shows, r.renders} {
		for i, e := range r.ended {
			if r.options.enough() {
				return -1, nil, true
			}
			if _, looked := r.types[i]; !looked && !isRead(known) {
				r.types[i] = r.typesOf(e.session)
			}
			if comes(known, r.types[i], e.session) {
				return i, comes, false
			}
		}
	}
	return -1, nil, false
}

// typesOf returns the faults that the types find in what a session renders.
func (r *placeSearch) typesOf(s program.Session) fault.Faults {
	return r.program.Shown(r.program.TypeFaults(r.kinds(), &s)...)
}

// shows reports whether a session renders what has a fault, or reads it.
func (r *placeSearch) shows(known fault.Fault, types fault.Faults, s program.Session) bool {
	if isRead(known) {
		return r.reads(s, strings.Split(known.Path, "."))
	}
	return slices.ContainsFunc(types, func(f fault.Fault) bool {
		return isAt(f, known.Position) && lastName(f.Path) == lastName(known.Path) && f.Message == known.Message &&
			(fault.SplitPath(f.Path)[0] != "components" || r.renders(f, nil, s)) // the types judge what is excluded, too
	})
}

// renders reports whether a session has the component of a fault at a path of it, and its object if the path leads into one.
func (r *placeSearch) renders(known fault.Fault, _ fault.Faults, s program.Session) bool {
	path := fault.SplitPath(known.Path)
	if len(path) < 2 || path[0] != "components" {
		return false
	}
	out, err := r.evaluator.CachingProgram.Evaluate(s)
	if err != nil {
		return false
	}
	at := slices.IndexFunc(out.Components, func(c program.Component) bool { return c.Name == path[1] })
	if at < 0 || out.Components[at].When.Verdict == program.False {
		return false
	}
	return len(path) < 4 || path[2] != "objects" ||
		slices.ContainsFunc(out.Components[at].Objects, func(o program.Object) bool { return o.Name == path[3] })
}

// isRead reports whether a fault is about a field of a live object that the package reads.
func isRead(f fault.Fault) bool {
	return strings.HasPrefix(f.Path, "live.") && strings.Count(f.Path, ".") > 2 && !strings.ContainsAny(f.Path, `["`)
}

// reads reports whether a package says something else if a field of a live object has some value. It does not have to be
// right for the package: an error is something else, too.
func (r *placeSearch) reads(s program.Session, path []string) bool {
	if s.Live[path[1]][path[2]] == nil {
		return false
	}
	was, wasErr := r.evaluator.CachingProgram.Evaluate(s)
	for _, value := range []any{int64(7), "text", true, map[string]any{}} {
		is, err := r.evaluator.CachingProgram.Evaluate(withLive(s, path, value))
		if (err == nil) != (wasErr == nil) || !reflect.DeepEqual(was, is) {
			return true
		}
	}
	return false
}

// withLive returns a session in which something of a live object is another value. The path begins with live.
func withLive(s program.Session, path []string, value any) program.Session {
	s.Live = maps.Clone(s.Live)
	s.Live[path[1]] = maps.Clone(s.Live[path[1]])
	s.Live[path[1]][path[2]], _ = put(s.Live[path[1]][path[2]], path[3:], value).(map[string]any)
	return s
}

// put returns data with a value at a path, and with what is around it.
func put(data any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	had, _ := data.(map[string]any)
	out := maps.Clone(had)
	if out == nil {
		out = map[string]any{}
	}
	out[path[0]] = put(out[path[0]], path[1:], value)
	return out
}
