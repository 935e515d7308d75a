package check

import (
	"cmp"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// neverReady reports why the case does not become ready, if that follows from the package alone.
func (t *trial) neverReady() {
	waits := t.waits()
	var roots, others []*wait
	for _, w := range waits {
		switch {
		case w.excused:
		case len(w.follows) == 0:
			roots = append(roots, w)
		default:
			others = append(others, w)
		}
	}
	for _, w := range roots {
		t.reportWait(w)
	}
	if len(roots) > 0 || len(others) == 0 {
		return
	}
	names := []string{}
	for _, w := range others {
		names = append(names, w.component.Name+" for "+strings.Join(w.follows, " and "))
	}
	first := others[0]
	t.report(fault.Fault{
		Position: positionOf(first.component),
		Path:     "components." + first.component.Name,
		Message:  "it never becomes ready, because components wait for each other: " + strings.Join(names, ", "),
		Hint:     "remove one of the references; what follows from cr needs no live object",
	})
}

// rejected returns why the objects of a component were refused, or nil.
func (t *trial) rejected() *fault.Fault {
	for _, c := range t.last.Components {
		if c.Reason == status.ReasonObjectRejected {
			return &fault.Fault{Position: positionOf(c), Path: "components." + c.Name, Message: t.last.Redactor.Text(c.Message)}
		}
	}
	return nil
}

// A wait is a component that is not done in the end, and what it waits for.
type wait struct {
	component rollout.ComponentPreview
	// follows are the other components that it waits for.
	follows []string
	// excused says that it may go on for a reason outside the package.
	excused bool
	// position is where it refers to an input that never is there, and hint what to do about it.
	position fault.Position
	hint     string
}

// waits returns the components that are not done. One that waits for a component with an excuse has one, too.
func (t *trial) waits() []*wait {
	var out []*wait
	by := map[string]*wait{}
	for _, c := range t.last.Components {
		if c.Done() || c.State == status.Excluded {
			continue
		}
		w := t.waitOf(c)
		t.dropExcluded(w)
		out = append(out, w)
		by[c.Name] = w
	}
	for range out {
		for _, w := range out {
			for _, name := range w.follows {
				if other := by[name]; other == nil || other.excused {
					w.excused = true
				}
			}
		}
	}
	return out
}

// dropExcluded takes the components away that do not exist with this specification, or are not in the package at all: what is waited
// for does not come from them.
func (t *trial) dropExcluded(w *wait) {
	w.follows = slices.DeleteFunc(w.follows, func(name string) bool {
		if !slices.ContainsFunc(t.last.Components, func(c rollout.ComponentPreview) bool { return c.Name == name }) {
			w.hint = "there is no component " + name + " for this resource, so nothing of it comes"
			return true
		}
		if !excludedBySpec(t.program.Syntax(), t.last.Components, name) {
			return false
		}
		w.hint = "component " + name + " does not exist for this resource, so nothing of it comes: refer to it only under the condition that it does"
		return true
	})
}

// excludedBySpec reports whether a component does not exist whatever is in the cluster: its when, or that of one that it depends on, is
// false, and reads nothing but the specification.
func excludedBySpec(index *syntax.Index, components []rollout.ComponentPreview, name string) bool {
	at := slices.IndexFunc(components, func(c rollout.ComponentPreview) bool { return c.Name == name && c.State == status.Excluded })
	if at < 0 {
		return false
	}
	c := components[at].Source
	if c.When.Verdict != program.False {
		return slices.ContainsFunc(c.Edges, func(e program.Edge) bool {
			return e.Origin != program.Derived && !e.Optional && excludedBySpec(index, components, e.To)
		})
	}
	by := index.PathRestsOn("components", name, "when")
	return len(by) > 0 && !slices.ContainsFunc(by, func(r syntax.Reference) bool { return r.Path[0] != "cr" })
}

// waitOf returns what one component waits for.
func (t *trial) waitOf(c rollout.ComponentPreview) *wait {
	w := &wait{component: c}
	for _, name := range slices.Concat(c.WaitsFor, c.Source.MissingFrom) {
		w.follow(name)
	}
	absent := t.absent(c.Source)
	for _, r := range absent {
		t.addAbsent(w, r)
	}
	w.excused = w.excused || len(absent) == 0 && len(w.follows) == 0 &&
		// It may wait for a field of an input by another name.
		slices.ContainsFunc(t.last.Rollout.Inputs, func(i program.Input) bool {
			return i.ReadBy == nil || slices.Contains(i.ReadBy, c.Name)
		})
	switch c.Reason {
	case status.ReasonValue, status.ReasonFieldNotSet, status.ReasonDependency, status.ReasonUndecided:
	case status.ReasonRequirement:
		w.excused = w.excused || slices.ContainsFunc(c.Source.Requires, func(p program.Predicate) bool { return p.Verdict == program.False })
	case status.ReasonNotReady:
		w.excused = w.excused || !falseAlone(c)
	default:
		w.excused = true
	}
	return w
}

func (w *wait) follow(name string) {
	if name != w.component.Name && !slices.Contains(w.follows, name) {
		w.follows = append(w.follows, name)
	}
}

// absent returns the references to what does not exist.
func (t *trial) absent(c program.Component) []syntax.Reference {
	out := slices.Clone(c.Absent)
	add := func(r syntax.Reference) {
		if len(r.Path) > 0 {
			out = append(out, r)
		}
	}
	add(c.When.Absent)
	for _, p := range slices.Concat(c.Requires, c.Verify) {
		if p.Verdict == program.Unknown {
			add(p.Absent)
		}
	}
	return out
}

// addAbsent adds what a missing reference waits for. A field that an object of the cluster does not have is
// an excuse, because a controller that is unknown here may add it.
func (t *trial) addAbsent(w *wait, r syntax.Reference) {
	switch {
	case r.Path[0] == "cr":
	case r.Path[0] == "inputs" && len(r.Path) > 1 && t.neverThere(w, r):
	case r.Path[0] == "live" && len(r.Path) > 1 && !t.exists(r.Path), r.Path[0] == "components" && len(r.Path) > 1:
		w.follow(r.Path[1])
	default:
		w.excused = true
	}
}

// exists reports whether the object of a reference to live exists.
func (t *trial) exists(path []string) bool {
	for _, c := range t.last.Components {
		for _, o := range c.Objects {
			if c.Name == path[1] && o.Live != nil && (len(path) < 3 || o.Object == path[2]) {
				return true
			}
		}
	}
	return false
}

// falseAlone reports whether predicates that are false are all that a component waits for, and if so whether
// they are about objects whose controllers are simulated.
func falseAlone(c rollout.ComponentPreview) bool {
	wrong := false
	for _, p := range c.Source.Verify {
		switch p.Verdict {
		case program.Unknown:
			return false
		case program.False:
			wrong = true
		case program.True, program.Broken:
		}
	}
	return wrong
}

// neverTrue is what is said of a predicate that is false in the end.
const neverTrue = "is never true"

// reportWait reports a component that waits for nothing that could change.
func (t *trial) reportWait(w *wait) {
	c := w.component
	if t.waitIsKnown(c) {
		t.out.known = true
		return
	}
	for _, p := range c.Source.Verify {
		if p.Verdict == program.False && c.Reason == status.ReasonNotReady {
			path := verifyPath(c.Name, p.Name)
			t.out.add(problem{
				fault:     fault.Fault{Position: p.Position, Path: path, Message: strings.TrimSuffix(p.Source+" "+neverTrue+": "+p.Detail, ": ")},
				live:      t.liveObjects(),
				predicate: path,
			})
		}
	}
	if c.Reason == status.ReasonNotReady {
		return
	}
	t.report(fault.Fault{Position: cmp.Or(w.position, positionOf(c)), Path: "components." + c.Name, Message: "it never becomes ready: " + t.last.Redactor.Text(c.Message), Hint: w.hint})
}
