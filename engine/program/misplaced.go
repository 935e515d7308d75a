package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/program/syntax"
)

// MisplacedHint returns where a kind has the field that it does not have at an index of a path, as a hint, or "" if it has none
// nearby: one level above, or some levels below.
func (k *Kinds) MisplacedHint(kind schema.GroupVersionKind, path []string, at int) string {
	name, around := path[at], path[:at]
	if at > 0 && slices.Contains(k.namesAt(kind, around[:at-1]), name) {
		return belongs(name, around[:at-1])
	}
	beside := [][]string{around}
	for range maxMisplaced {
		var below, found [][]string
		for _, place := range beside {
			for _, next := range k.namesAt(kind, place) {
				in := append(slices.Clip(place), next)
				if k.isList(kind, in) {
					in = append(in, syntax.Each)
				}
				if slices.Contains(k.namesAt(kind, in), name) {
					found = append(found, in)
				}
				below = append(below, in)
			}
		}
		if len(found) > 0 {
			return belongs(name, usual(found))
		}
		beside = below
	}
	return ""
}

// usual returns the place that is most often meant: containers, and not initContainers or volumes.
func usual(places [][]string) []string {
	rank := func(place []string) int {
		if slices.Contains(place, "containers") {
			return 0
		}
		return len(strings.Join(place, "."))
	}
	return slices.MinFunc(places, func(a, b []string) int { return rank(a) - rank(b) })
}

// maxMisplaced is how many levels deeper a field is looked for.
const maxMisplaced = 3

// belongs says where a field is.
func belongs(name string, place []string) string {
	if len(place) == 0 {
		return name + " is a field of the object itself"
	}
	return name + " is a field of " + strings.ReplaceAll(strings.Join(place, "."), "."+syntax.Each, "[]")
}

// namesAt returns the names of the fields that a kind has at a path, without those of a map.
func (k *Kinds) namesAt(kind schema.GroupVersionKind, path []string) []string {
	of, ok := k.Of(kind)
	if len(path) > 0 {
		of, _ = k.FieldOf(kind, path)
	}
	if !ok || !of.Exists() || of.IncompleteKind() != cue.StructKind {
		return nil
	}
	return k.fields(kind.String()+" "+syntax.Reference{Path: path}.String(), of).names
}

// isList reports whether a kind has a list at a path.
func (k *Kinds) isList(kind schema.GroupVersionKind, path []string) bool {
	of, _ := k.FieldOf(kind, path)
	return of.Exists() && of.IncompleteKind() == cue.ListKind
}
