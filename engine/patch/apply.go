package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/program"
)

// Reason is the result of a patch in one word. The catalogue in docs/reasons.md has an entry
// for each.
type Reason string

// The reasons.
const (
	// Applied: every object that the patch names is written with its changes.
	Applied Reason = "Applied"
	// TargetNotFound: the custom resource does not exist.
	TargetNotFound Reason = "TargetNotFound"
	// NoSuchKind: no package serves the target's kind.
	NoSuchKind Reason = "NoSuchKind"
	// TargetClusterScoped: the target is cluster-scoped, so it is not in the patch's namespace.
	TargetClusterScoped Reason = "TargetClusterScoped"
	// TargetPaused: the custom resource is paused.
	TargetPaused Reason = "TargetPaused"
	// NotRendered: nothing is rendered for the custom resource.
	NotRendered Reason = "NotRendered"
	// NoSuchObject: no object has the address.
	NoSuchObject Reason = "NoSuchObject"
	// Invalid: the change is wrong, or not allowed.
	Invalid Reason = "Invalid"
	// NotPatchable: the change affects a field that is only patchable if the package says so.
	NotPatchable Reason = "NotPatchable"
	// TooMany: the limits for the resource were reached before this patch.
	TooMany Reason = "TooMany"
	// Conflict: the change does not fit the object as it is rendered.
	Conflict Reason = "Conflict"
	// Rejected: the API server rejected the changed object.
	Rejected Reason = "Rejected"
	// Pending: the object is not written yet.
	Pending Reason = "Pending"
)

// A Report is the result of one patch.
type Report struct {
	Patch Patch
	// Applied are the objects that it has changed.
	Applied []ChangedObject
	// Unmatched are the changes that were left out, and why. An entry without an address is
	// about the whole patch.
	Unmatched []UnmatchedChange
}

// A ChangedObject is an object that a patch has changed.
type ChangedObject struct {
	Address string
	// Component and Name are the parts of the address.
	Component, Name string
	// Object is the object as text: Deployment default/web.
	Object string
}

// A UnmatchedChange is a change that was left out.
type UnmatchedChange struct {
	Address string
	Reason  Reason
	Message string
}

// Apply returns rendered components with the changes of patches, and a report for each patch,
// in the order in which they were applied. It does not modify its arguments. A patch changes
// only objects for which reach is true, and none for which reach errors.
func Apply(rendered []program.Component, patches []Patch, reach func(program.Object) (bool, error)) ([]program.Component, []Report) {
	w := application{components: slices.Clone(rendered), reach: reach}
	for i := range w.components {
		w.components[i].Objects = slices.Clone(w.components[i].Objects)
	}
	var out []Report
	changes := 0
	for i, p := range sortedByOrder(patches) {
		if changes += len(p.Changes); i >= maxPatches || changes > maxChanges {
			out = append(out, NotApplied(p, TooMany, fmt.Sprintf("only the first %d patches of a resource are applied, with at most %d changes in total", maxPatches, maxChanges)))
			continue
		}
		out = append(out, w.apply(p))
	}
	return w.components, out
}

// maxPatches and maxChanges bound the patches of one resource that are applied, and their
// changes. Patches are for incidents, not for configuration, and each costs time in every
// reconcile.
const (
	maxPatches = 64
	maxChanges = 256
)

// application is the state of one call of Apply.
type application struct {
	components []program.Component
	reach      func(program.Object) (bool, error)
	// cost is the cost of the changes so far.
	cost int
}

func (w *application) apply(p Patch) Report {
	out := Report{Patch: p}
	if p.Invalid != "" {
		out.Unmatched = append(out.Unmatched, UnmatchedChange{Reason: Invalid, Message: p.Invalid})
		return out
	}
	for _, c := range p.Changes {
		place, err := w.change(p, c)
		if err == nil {
			out.Applied = append(out.Applied, place)
			continue
		}
		miss := UnmatchedChange{Address: c.Address, Reason: Invalid, Message: err.Error()}
		if f, ok := errors.AsType[*changeError](err); ok {
			miss.Reason = f.reason
		}
		out.Unmatched = append(out.Unmatched, miss)
	}
	return out
}

// change applies one change.
func (w *application) change(p Patch, c Change) (ChangedObject, error) {
	component, object, err := w.findObject(c.Address)
	if err != nil {
		return ChangedObject{}, err
	}
	switch {
	case component.When.Verdict == program.False:
		return ChangedObject{}, changeErrorf(NoSuchObject, "component %s should not exist: when is false", component.Name)
	case object.Manifest == nil:
		return ChangedObject{}, changeErrorf(Pending, "it is not rendered yet%s", detail(component.Missing))
	}
	if err := w.checkReach(p, *object); err != nil {
		return ChangedObject{}, err
	}
	if w.cost += c.cost(object.Manifest); w.cost > maxCost {
		return ChangedObject{}, changeErrorf(TooMany, "the changes of this resource cost too much in total: use fewer changes, shorter lists or smaller objects")
	}
	changed, err := c.applyTo(*object)
	if err != nil {
		return ChangedObject{}, err
	}
	object.Manifest = changed
	return ChangedObject{
		Address: c.Address, Component: component.Name, Name: object.Name,
		Object: fmt.Sprintf("%s %s/%s", object.Identity.Kind, p.Namespace, object.Identity.Name),
	}, nil
}

// checkReach errors if an object is outside the namespace of a patch, or if that is not known.
func (w *application) checkReach(p Patch, o program.Object) error {
	if w.reach == nil {
		return nil
	}
	reached, err := w.reach(o)
	switch {
	case err != nil:
		return changeErrorf(Pending, "cannot tell whether %s %s is in namespace %s, and a patch only changes objects of its own namespace: %v", o.Identity.Kind, o.Identity.Name, p.Namespace, err)
	case !reached:
		return changeErrorf(Invalid, "%s %s is not in namespace %s, and a patch only changes objects of its own namespace", o.Identity.Kind, o.Identity.Name, p.Namespace)
	}
	return nil
}

// detail returns a list as the end of a sentence.
func detail(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, "; ")
}

// findObject returns the object of an address, and its component. It compares the address as a
// whole, because names may have dots.
func (w *application) findObject(address string) (*program.Component, *program.Object, error) {
	var names, owners []string
	for i := range w.components {
		c := &w.components[i]
		names = append(names, c.Name)
		rest, ok := strings.CutPrefix(address, c.Name+".")
		if !ok {
			continue
		}
		var objects []string
		for j := range c.Objects {
			if c.Objects[j].Name == rest {
				return c, &c.Objects[j], nil
			}
			objects = append(objects, c.Objects[j].Name)
		}
		owners = append(owners, fmt.Sprintf("component %s has no object %s%s", c.Name, rest, alternatives(objects)))
	}
	if len(owners) > 0 {
		return nil, nil, changeErrorf(NoSuchObject, "%s", strings.Join(owners, "; "))
	}
	return nil, nil, changeErrorf(NoSuchObject, "an address is component.object, and there is no such component%s", alternatives(names))
}

// alternatives returns the existing names, as the end of a sentence.
func alternatives(names []string) string {
	if len(names) == 0 {
		return "; there is none"
	}
	return "; there are " + strings.Join(names, ", ")
}

// A changeError is why a change was left out.
type changeError struct {
	reason Reason
	text   string
}

// Error says why.
func (f *changeError) Error() string { return f.text }

func changeErrorf(reason Reason, format string, args ...any) error {
	return &changeError{reason: reason, text: fmt.Sprintf(format, args...)}
}
