package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/program"
)

// Reason says in one word what came of a patch. The catalogue in docs/reasons.md has
// an entry for each.
type Reason string

// The reasons.
const (
	// Applied: every object that the patch names is as it says.
	Applied Reason = "Applied"
	// TargetNotFound: the custom resource does not exist.
	TargetNotFound Reason = "TargetNotFound"
	// NoSuchKind: the target's kind is not that of a package.
	NoSuchKind Reason = "NoSuchKind"
	// TargetClusterScoped: the target is in no namespace, and so not in the patch's.
	TargetClusterScoped Reason = "TargetClusterScoped"
	// TargetPaused: the custom resource is paused.
	TargetPaused Reason = "TargetPaused"
	// NotRendered: nothing is rendered for the custom resource.
	NotRendered Reason = "NotRendered"
	// NoSuchObject: no object has the address.
	NoSuchObject Reason = "NoSuchObject"
	// Invalid: the change is wrong, or not allowed.
	Invalid Reason = "Invalid"
	// NotPatchable: the change is of a field that patches do not change unless the package
	// opens it.
	NotPatchable Reason = "NotPatchable"
	// TooMany: too many patches of the same resource come before it.
	TooMany Reason = "TooMany"
	// Conflict: the change does not fit the object as it is rendered.
	Conflict Reason = "Conflict"
	// Rejected: the API server refused the object as the patch changes it.
	Rejected Reason = "Rejected"
	// Pending: the object is not written yet.
	Pending Reason = "Pending"
)

// A Report is what came of one patch.
type Report struct {
	Patch Patch
	// Applied are the objects that it has changed.
	Applied []Place
	// Unmatched are the changes that were left out, and why. One without an address
	// is about the patch as a whole.
	Unmatched []Miss
}

// A Place is an object that a patch has changed.
type Place struct {
	Address string
	// Component and Name are the parts of the address.
	Component, Name string
	// Object is the object as a person writes it: Deployment default/web.
	Object string
}

// A Miss is a change that was left out.
type Miss struct {
	Address string
	Reason  Reason
	Message string
}

// Apply changes rendered components by patches, and returns them with a report for
// each patch, in the order in which they were applied. What it was given stays as it
// is. A patch changes only objects within its reach, and none of which it is not known
// whether they are.
func Apply(rendered []program.Component, patches []Patch, reach func(program.Object) (bool, error)) ([]program.Component, []Report) {
	w := work{components: slices.Clone(rendered), reach: reach}
	for i := range w.components {
		w.components[i].Objects = slices.Clone(w.components[i].Objects)
	}
	var out []Report
	changes := 0
	for i, p := range sorted(patches) {
		if changes += len(p.Changes); i >= most || changes > mostChanges {
			out = append(out, Whole(p, TooMany, fmt.Sprintf("of all patches of a resource, the first %d are applied, with %d changes in all", most, mostChanges)))
			continue
		}
		out = append(out, w.apply(p))
	}
	return w.components, out
}

// most and mostChanges are how many patches of one resource are applied, and how many
// changes of them. They are for hours, not for configuration, and each costs time in every
// reconcile.
const (
	most        = 64
	mostChanges = 256
)

// work is what one call of Apply works on.
type work struct {
	components []program.Component
	reach      func(program.Object) (bool, error)
	// effort is what the changes so far have cost.
	effort int
}

func (w *work) apply(p Patch) Report {
	out := Report{Patch: p}
	if p.Invalid != "" {
		out.Unmatched = append(out.Unmatched, Miss{Reason: Invalid, Message: p.Invalid})
		return out
	}
	for _, c := range p.Changes {
		place, err := w.change(p, c)
		if err == nil {
			out.Applied = append(out.Applied, place)
			continue
		}
		miss := Miss{Address: c.Address, Reason: Invalid, Message: err.Error()}
		if f, ok := errors.AsType[*fault](err); ok {
			miss.Reason = f.reason
		}
		out.Unmatched = append(out.Unmatched, miss)
	}
	return out
}

// change makes one change.
func (w *work) change(p Patch, c Change) (Place, error) {
	component, object, err := w.find(c.Address)
	if err != nil {
		return Place{}, err
	}
	switch {
	case component.When.Verdict == program.False:
		return Place{}, faultf(NoSuchObject, "component %s should not exist: when is false", component.Name)
	case object.Manifest == nil:
		return Place{}, faultf(Pending, "it is not rendered yet%s", behind(component.Missing))
	}
	if err := w.reaches(p, *object); err != nil {
		return Place{}, err
	}
	if w.effort += c.effort(object.Manifest); w.effort > mostEffort {
		return Place{}, faultf(TooMany, "the changes of a resource are too much in all: fewer of them, shorter lists, or a smaller object would do")
	}
	changed, err := c.of(*object)
	if err != nil {
		return Place{}, err
	}
	object.Manifest = changed
	return Place{
		Address: c.Address, Component: component.Name, Name: object.Name,
		Object: fmt.Sprintf("%s %s/%s", object.Identity.Kind, p.Namespace, object.Identity.Name),
	}, nil
}

// reaches errors if a patch does not reach an object, or may not.
func (w *work) reaches(p Patch, o program.Object) error {
	if w.reach == nil {
		return nil
	}
	reached, err := w.reach(o)
	switch {
	case err != nil:
		return faultf(Pending, "it is not known whether %s %s is an object of namespace %s, and a patch changes no other: %v", o.Identity.Kind, o.Identity.Name, p.Namespace, err)
	case !reached:
		return faultf(Invalid, "%s %s is not an object of namespace %s, and a patch changes no other", o.Identity.Kind, o.Identity.Name, p.Namespace)
	}
	return nil
}

// behind returns a list as the end of a sentence.
func behind(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, "; ")
}

// find returns the object of an address, and its component. Names may have dots: the
// address is compared as a whole.
func (w *work) find(address string) (*program.Component, *program.Object, error) {
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
		owners = append(owners, fmt.Sprintf("component %s has no object %s%s", c.Name, rest, choice(objects)))
	}
	if len(owners) > 0 {
		return nil, nil, faultf(NoSuchObject, "%s", strings.Join(owners, "; "))
	}
	return nil, nil, faultf(NoSuchObject, "an address is component.object, and no component is called so%s", choice(names))
}

// choice returns what there is, as the end of a sentence.
func choice(names []string) string {
	if len(names) == 0 {
		return "; there are none"
	}
	return "; there are " + strings.Join(names, ", ")
}

// A fault is why a change was left out.
type fault struct {
	reason Reason
	text   string
}

// Error says why.
func (f *fault) Error() string { return f.text }

func faultf(reason Reason, format string, args ...any) error {
	return &fault{reason: reason, text: fmt.Sprintf(format, args...)}
}
