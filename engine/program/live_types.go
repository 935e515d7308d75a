package program

import (
	"slices"
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
// If the author did not give the object a type, only what looks like a slip is a fault, such as a field one level too high, because the
// author may know a newer version of Kubernetes.
func (s *Static) LiveFaults(kinds *Kinds) (out fault.Faults) {
	root := s.compiled.fill(nil)
	seen := map[string]bool{}
	for _, r := range s.index.Readings() {
		kind, is, depth := kindRead(root, r.Path)
		if depth == 0 || depth >= len(r.Path) || r.Imported {
			continue
		}
		at, known := kinds.Unknown(kind, r.Path[depth:])
		if at < 0 {
			continue
		}
		name := r.Path[depth+at]
		_, custom := kinds.customType(kind)
		_, near := ClosestName(name, known)
		hint := typeHint(name, known)
		if elsewhere := kinds.MisplacedHint(kind, r.Path[depth:], at); !near && elsewhere != "" {
			near, hint = true, elsewhere
		}
		if !near && !is && !custom {
			continue
		}
		path := r.Path[:depth+at+1]
		text := strings.Join(path, " ")
		if seen[text] {
			continue
		}
		seen[text] = true
		out = append(out, fault.Fault{
			Code: fault.UnknownField, Position: s.index.WhereRead(path), Path: syntax.Reference{Path: path}.String(),
			Message: fault.UnknownFieldMessage, Hint: hint,
		})
	}
	return out
}

// kindRead returns the kind of the object that a path leads into, whether the author gave it a type, and how
// many names lead to it. There are none if the text does not show the kind.
func kindRead(root cue.Value, path []string) (kind schema.GroupVersionKind, is bool, depth int) {
	switch {
	case len(path) > 3 && path[0] == "live":
		object := Lookup(root, "components", path[1], "objects", path[2])
		if !object.Exists() {
			return kind, false, 0
		}
		return refOf(object).GroupVersionKind, typed(object), 3
	case len(path) > 3 && path[0] == "inputs" && path[2] == "object":
		return refOf(Lookup(root, "inputs", path[1])).GroupVersionKind, false, 3
	case len(path) > 4 && path[0] == "inputs" && path[2] == "objects":
		return refOf(Lookup(root, "inputs", path[1])).GroupVersionKind, false, 4
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
	for i := range path {
		below := k.below(kind, of, path[:i+1])
		if !below.of.Exists() {
			return below.at, below.known
		}
		of = below.of
	}
	return -1, nil
}

// FieldOf returns the type of a field of a kind, and whether every object with the struct around it has the field. The
// value does not exist if that is not known.
func (k *Kinds) FieldOf(kind schema.GroupVersionKind, path []string) (of cue.Value, required bool) {
	of, ok := k.Of(kind)
	if !ok {
		return cue.Value{}, false
	}
	for i := range path {
		below := k.below(kind, of, path[:i+1])
		if of, required = below.of, below.required; !of.Exists() {
			return cue.Value{}, false
		}
	}
	return of, required
}

// belowType is what a type has at one more name of a path.
type belowType struct {
	of       cue.Value
	required bool
	// at is the index of the name if the type does not have it, and known what it has, or -1.
	at    int
	known []string
}

// below returns what a type has at the last name of a path.
func (k *Kinds) below(kind schema.GroupVersionKind, of cue.Value, path []string) belowType {
	last := len(path) - 1
	name := path[last]
	out := belowType{at: -1}
	switch is := of.IncompleteKind(); {
	case is == cue.ListKind:
		out.of = of.LookupPath(cue.MakePath(cue.AnyIndex))
	case is == cue.StructKind && name == syntax.Each:
		out.of = of.LookupPath(cue.MakePath(cue.AnyString))
	case is == cue.StructKind:
		next := k.fields(kind.String()+" "+syntax.Reference{Path: path[:last]}.String(), of)
		below, has := next.values[name]
		if !has {
			below = of.LookupPath(cue.MakePath(cue.AnyString))
		}
		if out.of = below; !below.Exists() && !of.Allows(cue.Str(name)) {
			out.at, out.known = last, next.names
		}
		out.required = has && slices.Contains(next.required, name)
	}
	return out
}
