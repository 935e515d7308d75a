package rollout

import (
	"context"
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// stampAll stamps the objects of the components that have no outcome yet.
func (pr *progress) stampAll(ctx context.Context) error {
	for _, c := range pr.rollout.Components {
		if _, done := pr.outcomes[c.Name]; !done {
			pr.stamp(ctx, c)
		}
	}
	pr.failDuplicates(ctx)
	return nil
}

// stamp makes the desired objects of a component that is rendered. If that fails, the
// component gets its outcome.
func (pr *progress) stamp(ctx context.Context, c program.Component) {
	delete(pr.desired, c.Name)
	delete(pr.awaited, c.Name)
	if _, excluded := pr.excluded[c.Name]; excluded || c.Rendering != program.RenderedComplete {
		return
	}
	var out []ownership.Desired
	for _, o := range c.Objects {
		scope, err := pr.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		if err != nil {
			text := "object " + o.Name + ": " + err.Error()
			switch {
			case !cluster.IsKindNotServed(err):
				pr.failures = append(pr.failures, err)
				pr.outcomes[c.Name] = retrying(c.Name, text)
			case defines(c, o.Identity.GroupKind()):
				pr.awaited[c.Name] = text
				continue
			case c.Unserved == program.UnservedSkip: // it counts as not being there, and keeps what it has
				pr.outcomes[c.Name] = status.Component{Name: c.Name, State: status.Excluded, Reason: status.ReasonKindNotServed, Message: text}
			default:
				pr.outcomes[c.Name] = waiting(c.Name, status.ReasonKindNotServed, text)
			}
			return
		}
		d, err := pr.stampObject(c.Name, o, ownership.StampOptions{Scope: scope, Reach: pr.Reach, After: pr.dependencies(c.Name), Key: pr.keyOf(c.Name, o)})
		if err != nil {
			pr.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, err.Error())
			return
		}
		out = append(out, d)
	}
	pr.desired[c.Name] = out
}

// A stamped is an object that was stamped in this rollout, with what it was stamped from.
type stamped struct {
	object  program.Object
	options ownership.StampOptions
	desired ownership.Desired
}

// stampObject stamps an object of a component. An object that an earlier evaluation of the same
// rollout has rendered is not stamped again: digests are most of what a stamp costs.
func (pr *progress) stampObject(component string, o program.Object, options ownership.StampOptions) (ownership.Desired, error) {
	key := [2]string{component, o.Name}
	if before, there := pr.stamped[key]; there && before.isFor(o, options) {
		return before.desired, nil
	}
	d, err := ownership.Stamp(pr.in.Owner, component, o, options)
	if err == nil {
		pr.stamped[key] = stamped{o, options, d}
	}
	return d, err
}

// isFor reports whether stamping another object, of the same name and component, has the same
// result. The owner and the reach of a rollout do not change.
func (s stamped) isFor(o program.Object, options ownership.StampOptions) bool {
	return s.object.Identity == o.Identity && s.object.Policy == o.Policy && s.object.Position == o.Position &&
		s.options.Scope == options.Scope && s.options.Key == options.Key && slices.Equal(s.options.After, options.After) &&
		object.EqualFields(s.object.Manifest, o.Manifest)
}

// rendering is one object that a component renders.
type rendering struct {
	component string
	object    program.Object
}

// String says where the object is in the package.
func (x rendering) String() string {
	return fmt.Sprintf("components.%s.objects.%s%s", x.component, x.object.Name, x.object.Position.InBrackets())
}

// failDuplicates fails the components that render an object of the same identity: each
// would overwrite the other's forever, and only a person can say which is meant. A component
// that should not exist, or perhaps not, renders nothing.
func (pr *progress) failDuplicates(ctx context.Context) {
	renders := map[cluster.Ref][]rendering{}
	var order []cluster.Ref
	for _, c := range pr.rollout.Components {
		if _, excluded := pr.excluded[c.Name]; excluded || c.When.Verdict != program.True {
			continue
		}
		for _, o := range c.Objects {
			if !o.Identity.Known() {
				continue
			}
			ref := pr.refOf(ctx, o).Identity()
			if renders[ref] == nil {
				order = append(order, ref)
			}
			renders[ref] = append(renders[ref], rendering{c.Name, o})
		}
	}
	for _, ref := range order {
		same := renders[ref]
		for i, x := range same {
			if len(same) == 1 || pr.outcomes[x.component].State == status.Failed {
				continue
			}
			pr.outcomes[x.component] = failed(x.component, status.ReasonDuplicateObject,
				fmt.Sprintf("%s and %s are the same object, %s; give one of them another name", x, same[(i+1)%len(same)], ref))
			delete(pr.desired, x.component)
		}
	}
}
