package vet

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// reach finds objects and inputs outside the namespace of the custom resource that the package does
// not list in its reach.
func reach(v *view) fault.Faults {
	if v.Meta().ClusterScoped {
		return nil
	}
	var out fault.Faults
	for _, s := range v.evaluations() {
		for _, o := range s.objects() {
			out = append(out, v.objectBeyondReach(s, o)...)
		}
	}
	_, inputs, _ := v.Syntax().SourceObjects()
	for _, s := range v.samples {
		for _, i := range s.rollout.Inputs {
			out = append(out, v.inputBeyondReach(s, i, inputs)...)
		}
	}
	return out
}

// objectBeyondReach returns a fault if the package may not own an object where it is.
func (v *view) objectBeyondReach(s sample, o placed) fault.Faults {
	kind, namespace := o.Identity.GroupKind(), o.Identity.Namespace
	clusterScoped := v.scopes.of(kind) == cluster.ClusterScoped
	if namespace == "" && !clusterScoped {
		return nil
	}
	if clusterScoped {
		namespace = ""
	}
	beyond, is := errors.AsType[*program.OutOfReachError](v.Reach().MayOwn(s.namespace, kind, namespace))
	switch {
	case !is:
		return nil
	case clusterScoped:
		return fault.Faults{{
			Position: o.Position,
			Path:     o.path(),
			Message:  "the object is cluster-scoped, and its custom resource is namespaced",
			Hint:     "write " + beyond.Hint() + " to allow it",
		}}
	}
	hint := "leave the namespace out, or write " + beyond.Hint() + " to allow it"
	if !v.says(namespace) {
		beyond.Namespace = "team-*" // the namespace is made up, so it is no example
		hint = "leave the namespace out, or say which ones there may be, as in " + beyond.Hint()
	}
	return fault.Faults{{
		Position: o.Position,
		Path:     o.path("metadata", "namespace"),
		Message:  "the object is in another namespace than its custom resource",
		Hint:     hint,
	}}
}

// says reports whether an object in the text of the package has a namespace.
func (v *view) says(namespace string) bool {
	objects, _, _ := v.Syntax().SourceObjects()
	return slices.ContainsFunc(objects, func(o syntax.SourceObject) bool { return o.HasLiteral(namespace, "metadata", "namespace") })
}

// inputBeyondReach returns a fault for each kind that an input may have and that the package may not
// read where the input is. The rule untrusted is about namespaces that the text does not have.
func (v *view) inputBeyondReach(s sample, i program.Input, inputs []syntax.SourceObject) fault.Faults {
	at := slices.IndexFunc(inputs, func(w syntax.SourceObject) bool { return slices.Equal(w.Path(), []string{"inputs", i.Name}) })
	if at < 0 || !inputs[at].HasLiteral(i.Namespace, "namespace") {
		return nil
	}
	var out fault.Faults
	kinds, _ := v.kindsOf(inputs[at])
	for _, name := range append(kinds, i.Kind.Kind) {
		kind := schema.GroupKind{Group: i.Kind.Group, Kind: name}
		beyond, is := errors.AsType[*program.OutOfReachError](v.Reach().MayRead(s.namespace, kind, i.Namespace))
		if !is || v.scopes.of(kind) == cluster.ClusterScoped {
			continue
		}
		out = append(out, fault.Fault{
			Position: i.Position,
			Path:     joined("inputs", i.Name, "namespace"),
			Message:  "the " + name + " is read in another namespace than that of the custom resource",
			Hint:     "leave the namespace out, or write " + beyond.Hint() + " to allow it",
		})
	}
	return out
}
