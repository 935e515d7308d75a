package rollout

import (
	"context"
	"fmt"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// rendering is one object that a component renders.
type rendering struct {
	component string
	object    program.Object
}

// path is where the object is in the package.
func (x rendering) path() string {
	return fmt.Sprintf("components.%s.objects.%s", x.component, x.object.Name)
}

// failDuplicates fails the components that render an object of the same identity: each
// would overwrite what the other one has written, for ever. Which of them is meant, only a
// person can say. Those that should not exist, or perhaps not, render nothing.
func (r *run) failDuplicates(ctx context.Context) {
	renders := map[cluster.Ref][]rendering{}
	var order []cluster.Ref
	for _, c := range r.rollout.Components {
		if _, excluded := r.excluded[c.Name]; excluded || c.When.Verdict != program.True {
			continue
		}
		for _, o := range c.Objects {
			if !o.Identity.Known() {
				continue
			}
			ref := r.refOf(ctx, o).Identity()
			if renders[ref] == nil {
				order = append(order, ref)
			}
			renders[ref] = append(renders[ref], rendering{c.Name, o})
		}
	}
	for _, ref := range order {
		same := renders[ref]
		for i, x := range same {
			if len(same) > 1 {
				r.failDuplicate(ref, x, same[(i+1)%len(same)])
			}
		}
	}
}

// failDuplicate fails the component of an object that another one is the same as.
func (r *run) failDuplicate(ref cluster.Ref, x, other rendering) {
	if before, ok := r.outcomes[x.component]; ok && before.State == status.Failed {
		return
	}
	r.outcomes[x.component] = failed(x.component, status.ReasonDuplicateObject, fmt.Sprintf(
		"%s%s and %s%s are the same object, %s; give one of them another name",
		x.path(), x.object.Position.Behind(), other.path(), other.object.Position.Behind(), ref))
	delete(r.desired, x.component)
}
