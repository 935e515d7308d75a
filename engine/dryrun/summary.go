package dryrun

import (
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
)

// maxNamed is how many objects a summary names for each thing that happens to them.
const maxNamed = 5

// Summary says in a line each what changes do to objects that exist, and what they create. What somebody may
// regret comes first.
func Summary(changes []cluster.Event) []string {
	var deleted, created, updated []cluster.Ref
	for _, c := range changes {
		switch c.Verb {
		case cluster.Deleted:
			deleted = append(deleted, c.Ref)
		case cluster.Created:
			created = append(created, c.Ref)
		case cluster.Updated:
			updated = append(updated, c.Ref)
		}
	}
	is := func(in []cluster.Ref) func(cluster.Ref) bool {
		return func(r cluster.Ref) bool {
			return slices.ContainsFunc(in, func(o cluster.Ref) bool { return o.Identity() == r.Identity() })
		}
	}
	var recreated []cluster.Ref
	for _, ref := range deleted {
		if is(created)(ref) {
			recreated = append(recreated, ref)
		}
	}
	return slices.Concat(
		lines("recreates", recreated), lines("deletes", slices.DeleteFunc(deleted, is(recreated))),
		lines("updates", updated), lines("creates", slices.DeleteFunc(created, is(recreated))),
	)
}

// lines names objects one a line, or counts those that are too many.
func lines(verb string, refs []cluster.Ref) []string {
	var out []string
	for i, ref := range refs {
		if i == maxNamed {
			return append(out, fmt.Sprintf("%s %d more objects", verb, len(refs)-i))
		}
		out = append(out, fmt.Sprintf("%s %s %s", verb, ref.Kind, ref.Name))
	}
	return out
}
