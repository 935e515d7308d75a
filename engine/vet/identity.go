package vet

import (
	"errors"
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// identities finds objects that two places of a package render, which would undo
// each other's changes for ever, and objects where the package may have none.
//
// It looks at evaluations, because most names depend on the custom resource. When
// none could be made up, it knows the names that do not.
func identities(v *view) fault.Faults {
	evaluated := v.samples
	if len(evaluated) == 0 {
		evaluated = []sample{{rollout: program.Rollout{Components: v.template}}}
	}
	var out fault.Faults
	for _, s := range evaluated {
		first := map[object.Ref]placed{}
		for _, o := range s.objects() {
			out = append(out, v.reachable(s, o)...)
			key := o.Identity.Identity() // one object in all its versions
			if key.Namespace == "" {
				key.Namespace = s.namespace
			}
			before, twice := first[key]
			switch {
			case !twice:
				first[key] = o
			case !s.coincides:
				out = append(out, duplicate(before, o))
			}
		}
	}
	return out
}

// placed is an object with its component.
type placed struct {
	component string
	program.Object
}

func (p placed) path(below ...string) string {
	return joined(append([]string{"components", p.component, "objects", p.Name}, below...)...)
}

// objects returns the objects of a sample that should exist and whose identity is
// known. Components that exclude each other may share an object.
func (s sample) objects() []placed {
	var out []placed
	for _, c := range s.rollout.Components {
		for _, o := range c.Objects {
			if c.When.Verdict == program.True && o.Identity.Known() {
				out = append(out, placed{c.Name, o})
			}
		}
	}
	return out
}

func duplicate(first, second placed) fault.Fault {
	return fault.Fault{
		Position: second.Position,
		Path:     second.path(),
		Message:  fmt.Sprintf("is the same %s as %s (%s)", second.Identity.Kind, first.path(), first.Position),
		Hint:     "give one of them another name, or make them one object",
	}
}

// reachable finds an object outside the namespace of its custom resource, in a
// package that says that there are none.
func (v *view) reachable(s sample, o placed) fault.Faults {
	kind, namespace := o.Identity.GroupKind(), o.Identity.Namespace
	everywhere := v.scopes.of(kind) == cluster.ClusterScoped
	if v.Meta().ClusterScoped || namespace == "" && !everywhere {
		return nil
	}
	if everywhere {
		namespace = ""
	}
	beyond, is := errors.AsType[*program.OutOfReachError](v.Reach().MayOwn(s.namespace, kind, namespace))
	switch {
	case !is:
		return nil
	case everywhere:
		return fault.Faults{{
			Position: o.Position,
			Path:     o.path(),
			Message:  "the object is in no namespace, and its custom resource is in one",
			Hint:     "write " + beyond.Hint() + " to allow it",
		}}
	}
	hint := "leave the namespace out, or write " + beyond.Hint() + " to allow it"
	if !v.says(namespace) {
		// It is made of what was made up: nobody has it.
		beyond.Namespace = "team-*"
		hint = "leave the namespace out, or say which ones there may be, as in " + beyond.Hint()
	}
	return fault.Faults{{
		Position: o.Position,
		Path:     o.path("metadata", "namespace"),
		Message:  "the object is in another namespace than its custom resource",
		Hint:     hint,
	}}
}

// says reports whether the package has a namespace written in one of its objects.
func (v *view) says(namespace string) bool {
	objects, _, _ := v.Syntax().Written()
	return slices.ContainsFunc(objects, func(o syntax.Written) bool { return o.Says(namespace, "metadata", "namespace") })
}
