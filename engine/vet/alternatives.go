package vet

import (
	"errors"
	"slices"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// kindsOf returns what an object or an input may be: what the text says, and each of those
// among which somebody else chooses. It is freely if they choose as they like.
func (v *view) kindsOf(w syntax.Written) (kinds []string, freely bool) {
	kinds = slices.Clone(w.Kinds)
	for _, o := range w.Outside("kind") {
		if o.Cut {
			freely = true
			continue
		}
		path := slices.Concat(o.Path, o.Below)
		if _, open := v.whoWrites(o, false); open {
			freely = true
			continue
		}
		switch {
		case path[0] == "config":
			kinds = append(kinds, textsAt(v.ConfigSchema(), path[1:], 0)...)
		case len(path) > 1 && path[1] == "spec":
			kinds = append(kinds, textsAt(v.CRSchema(), path[1:], 0)...)
		}
	}
	return kinds, freely
}

// textsAt returns the texts that a schema has written at a path.
func textsAt(schema cue.Value, path []string, depth int) []string {
	switch {
	case depth > maxDepth:
		return nil
	case len(path) > 0 && path[0] == syntax.Each:
		var out []string
		for _, m := range members(schema) {
			out = append(out, textsAt(m, path[1:], depth+1)...)
		}
		return out
	case len(path) > 0:
		next, _ := fieldOf(schema, path[0])
		return textsAt(next, path[1:], depth+1)
	}
	op, args := schema.Expr()
	switch to := cue.Dereference(schema); {
	case op == cue.OrOp, op == cue.AndOp, op == cue.NoOp && len(args) == 1 && args[0] != schema:
		var out []string
		for _, a := range args {
			out = append(out, textsAt(a, nil, depth+1)...)
		}
		return out
	case to != schema:
		return textsAt(to, nil, depth+1)
	}
	if text, err := schema.String(); err == nil {
		return []string{text}
	}
	return nil
}

// reads finds inputs that are read where the package does not say that it reads them, for
// each kind that they may be. One whose namespace is not written out is judged by who
// decides about that.
func reads(v *view) fault.Faults {
	if v.Meta().ClusterScoped {
		return nil
	}
	_, inputs, _ := v.Syntax().Written()
	var out fault.Faults
	for _, s := range v.samples {
		for _, i := range s.rollout.Inputs {
			at := slices.IndexFunc(inputs, func(w syntax.Written) bool { return slices.Equal(w.Path(), []string{"inputs", i.Name}) })
			if at < 0 || !inputs[at].Says(i.Namespace, "namespace") {
				continue
			}
			kinds, _ := v.kindsOf(inputs[at])
			for _, kind := range append(kinds, i.Kind.Kind) {
				out = append(out, v.readable(s, i, schema.GroupKind{Group: i.Kind.Group, Kind: kind})...)
			}
		}
	}
	return out.Sorted()
}

// readable returns a fault if an input may not be read as an object of a kind.
func (v *view) readable(s sample, i program.Input, kind schema.GroupKind) fault.Faults {
	beyond, is := errors.AsType[*program.OutOfReachError](v.Reach().MayRead(s.namespace, kind, i.Namespace))
	if !is || v.scopes.of(kind) == cluster.ClusterScoped {
		return nil
	}
	return fault.Faults{{
		Position: i.Position,
		Path:     joined("inputs", i.Name, "namespace"),
		Message:  "the " + kind.Kind + " is read in another namespace than that of the custom resource",
		Hint:     "leave the namespace out, or write " + beyond.Hint() + " to allow it",
	}}
}
