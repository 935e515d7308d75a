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
	byOutcome := map[Outcome][]cluster.Ref{}
	for _, e := range Effects(step.Changes, wantedBy(step, last)) {
		byOutcome[e.Outcome] = append(byOutcome[e.Outcome], e.Ref)
	}
	verbs := map[Outcome]string{Recreated: "recreates", Deleted: "deletes", Updated: "updates", Created: "creates"}
	var out []string
	for _, outcome := range Outcomes {
		out = append(out, lines(verbs[outcome], byOutcome[outcome])...)
	}
	return out
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
