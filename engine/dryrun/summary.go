package dryrun

import (
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// maxNamed is how many objects a summary names for each thing that happens to them.
const maxNamed = 5

// Summary says in a line each what a step does to objects that exist, and what it creates. What somebody may
// regret comes first. A deleted object that the last rollout of the step still has is made anew by the next step.
func Summary(step Step, last program.Rollout) []string {
	var deleted, created, updated []cluster.Ref
	for _, c := range step.Changes {
		switch c.Verb {
		case cluster.Deleted:
			deleted = append(deleted, c.Ref)
		case cluster.Created:
			created = append(created, c.Ref)
		case cluster.Updated:
			updated = append(updated, c.Ref)
		}
	}
	wanted := wantedBy(step, last)
	is := func(in []cluster.Ref) func(cluster.Ref) bool {
		return func(r cluster.Ref) bool {
			return slices.ContainsFunc(in, func(o cluster.Ref) bool { return o.Identity() == r.Identity() })
		}
	}
	var recreated []cluster.Ref
	for _, ref := range deleted {
		if is(created)(ref) || wanted(ref) {
			recreated = append(recreated, ref)
		}
	}
	return slices.Concat(
		lines("recreates", recreated), lines("deletes", slices.DeleteFunc(deleted, is(recreated))),
		lines("updates", updated), lines("creates", slices.DeleteFunc(created, is(recreated))),
	)
}

// wantedBy returns what reports whether a rollout has an object in a component that is not excluded.
func wantedBy(step Step, last program.Rollout) func(cluster.Ref) bool {
	excluded := map[string]bool{}
	components, _ := step.Status["components"].([]any)
	for _, c := range components {
		if m, isMap := c.(map[string]any); isMap && m["state"] == string(status.Excluded) {
			name, _ := m["name"].(string)
			excluded[name] = true
		}
	}
	return func(ref cluster.Ref) bool {
		return slices.ContainsFunc(last.Components, func(c program.Component) bool {
			return !excluded[c.Name] && slices.ContainsFunc(c.Objects, func(o program.Object) bool {
				id := o.Identity
				return id.GroupKind() == ref.GroupKind() && id.Name == ref.Name && (id.Namespace == "" || id.Namespace == ref.Namespace)
			})
		})
	}
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
