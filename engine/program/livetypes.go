package program

import (
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// LiveFaults returns the fields that a package reads of live objects and of inputs, and that their kinds do not
// have, by the complete types. The predicate that reads one waits for ever, and a default hides it.
//
// What definitions of other packages read of their arguments is none: health.#Ingress is written for several
// kinds, some of which report conditions.
//
// If the author did not give the object a type, only what looks like a slip is a fault, because the author may
// know a newer version of Kubernetes.
func (p *Program) LiveFaults(kinds *Kinds) (out fault.Faults) {
	root := p.fill(nil)
	seen := map[string]bool{}
	for _, r := range p.index.Readings() {
		kind, is, depth := kindRead(root, r.Path)
		if depth == 0 || depth >= len(r.Path) || r.Imported {
			continue
		}
		at, known := kinds.Unknown(kind, r.Path[depth:])
		if at < 0 {
			continue
		}
		name := r.Path[depth+at]
		_, custom := kinds.Custom(kind)
		if _, near := Nearest(name, known); !near && !is && !custom {
			continue
		}
		path := r.Path[:depth+at+1]
		text := strings.Join(path, " ")
		if seen[text] {
			continue
		}
		seen[text] = true
		out = append(out, fault.Fault{
			Code: fault.UnknownField, Position: p.index.WhereRead(path), Path: syntax.Reference{Path: path}.String(),
			Message: fault.UnknownFieldMessage, Hint: typeHint(name, known),
		})
	}
	return out
}

// kindRead returns the kind of the object that a path leads into, whether the author gave it a type, and how
// many names lead to it. There are none if the text does not show the kind.
func kindRead(root cue.Value, path []string) (kind schema.GroupVersionKind, is bool, depth int) {
	switch {
	case len(path) > 3 && path[0] == "live":
		object := lookup(root, "components", path[1], "objects", path[2])
		if !object.Exists() {
			return kind, false, 0
		}
		return refOf(object).GroupVersionKind, typed(object), 3
	case len(path) > 3 && path[0] == "inputs" && path[2] == "object":
		return refOf(lookup(root, "inputs", path[1])).GroupVersionKind, false, 3
	case len(path) > 4 && path[0] == "inputs" && path[2] == "objects":
		return refOf(lookup(root, "inputs", path[1])).GroupVersionKind, false, 4
	}
	return kind, false, 0
}

// Unknown returns the index of the first name of a path that a kind does not have, and the names that it has
// there, or -1.
func (k *Kinds) Unknown(kind schema.GroupVersionKind, path []string) (at int, known []string) {
	of, ok := k.Of(kind)
	if !ok {
		return -1, nil
	}
	for i, name := range path {
		switch is := of.IncompleteKind(); {
		case is == cue.ListKind:
			of = of.LookupPath(cue.MakePath(cue.AnyIndex))
		case is == cue.StructKind && name == syntax.Each:
			of = of.LookupPath(cue.MakePath(cue.AnyString))
		case is == cue.StructKind:
			next := k.fields(kind.String()+" "+syntax.Reference{Path: path[:i]}.String(), of)
			below, has := next.values[name]
			if !has {
				below = of.LookupPath(cue.MakePath(cue.AnyString))
			}
			if !below.Exists() && !of.Allows(cue.Str(name)) {
				return i, next.names
			}
			of = below
		default:
			return -1, nil
		}
		if !of.Exists() {
			return -1, nil
		}
	}
	return -1, nil
}
