package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// desireObjects stamps what may be applied and stores the inventory with it, before
// anything is written: an object that is not in it could be lost by a crash.
func (r *run) desireObjects(ctx context.Context) error {
	if err := r.stampAll(ctx); err != nil {
		return err
	}
	return r.recordObjects(ctx)
}

// stamp prepares the objects of a component that is rendered. What is in the way
// becomes the component's outcome.
func (r *run) stamp(ctx context.Context, c program.Component) {
	if _, gone := r.excluded[c.Name]; gone || c.Rendering != program.RenderedComplete {
		delete(r.desired, c.Name)
		return
	}
	var out []ownership.Desired
	delete(r.awaited, c.Name)
	for _, o := range c.Objects {
		scope, err := r.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		if cluster.IsKindNotServed(err) && defines(c, o.Identity.GroupKind()) {
			r.awaited[c.Name] = "object " + o.Name + ": " + err.Error()
			continue
		}
		if err != nil {
			r.refuseKind(c.Name, o.Name, err)
			return
		}
		d, err := ownership.Stamp(r.in.Owner, c.Name, o, ownership.Place{Scope: scope, Reach: r.Reach, After: r.dependencies(c.Name), Key: r.keyOf(c.Name, o)})
		if err != nil {
			r.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, err.Error())
			return
		}
		out = append(out, d)
	}
	r.desired[c.Name] = out
}

// refuseKind records that an object's kind could not be looked up.
func (r *run) refuseKind(component, object string, err error) {
	if cluster.IsKindNotServed(err) {
		r.outcomes[component] = r.unserved(component, "object "+object+": "+err.Error())
		return
	}
	r.failures = append(r.failures, err)
	r.outcomes[component] = retrying(component, "object "+object+": "+err.Error())
}

// recordObjects grows the inventory by what is to be applied, now or once its turn has
// come, and has it stored if it grew. An object that is not complete yet is
// announced as soon as its identity is known, so that most rollouts store it once.
func (r *run) recordObjects(ctx context.Context) error {
	return r.recordBeforeWrite(ctx, r.grownInventory(ctx))
}

// grownInventory returns the inventory with what is to be applied.
func (r *run) grownInventory(ctx context.Context) ownership.Inventory {
	grown := r.inventory
	for _, c := range r.rollout.Components {
		if !r.open(c) {
			continue
		}
		grown = grown.With(c.Name, r.deletedAfter(c.Name), r.entries(ctx, c))
	}
	return grown.Linked(r.graph.Dependencies).Ordered(r.graph.Nodes())
}

// entries returns the objects of a component that may be written. Where one of an unserved
// kind will be is not known, and one that no inventory can have is refused with its
// component.
func (r *run) entries(ctx context.Context, c program.Component) []ownership.Entry {
	var out []ownership.Entry
	for _, o := range c.Objects {
		scope, err := r.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		if !o.Identity.Known() || err != nil {
			continue
		}
		if e := ownership.EntryOf(o, r.in.Owner.Namespace, scope); e.Check() == nil {
			out = append(out, e)
		}
	}
	return out
}

// deletedAfter returns what is deleted after a component: as long as its objects are not
// what the package renders now, also what they depended on before.
func (r *run) deletedAfter(component string) []string {
	out := r.dependencies(component)
	if r.desired[component] != nil && r.inSync(component) {
		return out
	}
	for _, g := range r.inventory {
		if g.Component != component {
			continue
		}
		for _, to := range g.DependsOn {
			if !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// relinked returns the inventory with the edges of what was applied, which may be less
// than before.
func (r *run) relinked() ownership.Inventory {
	if r.graph == nil {
		return r.inventory
	}
	out := r.inventory
	for _, c := range r.rollout.Components {
		if o := r.outcomes[c.Name]; o.State == status.Verified || o.State == status.Applied {
			out = out.With(c.Name, r.dependencies(c.Name), nil)
		}
	}
	return out.Linked(r.graph.Dependencies)
}

// dependencies returns what is deleted after a component: what it depends on, and in
// place of what has no objects what that depends on. A hook depends on nothing.
func (r *run) dependencies(component string) []string {
	return ownership.NearestMatching(component, r.graph.Dependencies(component), r.graph.Dependencies, func(name string) bool {
		c, _ := r.component(name)
		return len(c.Objects) > 0
	})
}

// maxInventory is how many bytes of a status its inventory may take. The API server takes
// 1.5 MiB for all of a resource, and somebody else may have written most of that.
const maxInventory = 512 << 10

// recordBeforeWrite has a larger inventory stored before what is new in it is written.
func (r *run) recordBeforeWrite(ctx context.Context, grown ownership.Inventory) error {
	if grown.Equal(r.inventory) {
		return nil
	}
	if err := r.checkInventory(grown); err != nil {
		return err
	}
	preview := r.preview(ctx)
	preview.Patches = effective(r.patchReports())
	protection := Protection{Inventory: grown, Teardown: r.needsTeardown(grown), Preview: preview, Finished: r.hooksSoFar()}
	if err := r.in.Protect(ctx, protection); err != nil {
		return err
	}
	r.inventory = grown
	return nil
}

// checkInventory ends the rollout if the status has no room for a larger inventory, or if it
// would not be read again.
func (r *run) checkInventory(grown ownership.Inventory) error {
	// An inventory that is too large already may change, and a hook may run before it goes.
	if size := grown.Size(); size > max(maxInventory, r.inventory.Size()) && !r.deleting {
		r.fault(status.ReasonStatusTooLarge, fmt.Sprintf("the %d objects that the resource has, or would have, take %d bytes in its status, and %d are the limit", grown.Len(), size, maxInventory))
		return errStop
	}
	if err := grown.Check(); err != nil {
		r.fault(status.ReasonStatusTooLarge, fmt.Sprintf("the inventory of what the resource has, or would have, %v", err))
		return errStop
	}
	return nil
}

// needsTeardown reports whether garbage collection would not do for an inventory:
// it has an order, is out of reach, or something has to run before.
func (r *run) needsTeardown(inventory ownership.Inventory) bool {
	return inventory.NeedsTeardown() || slices.ContainsFunc(r.rollout.Hooks, func(h program.Hook) bool { return h.Phase == program.BeforeDelete })
}

// open reports whether nothing but its turn keeps a component from being applied.
func (r *run) open(c program.Component) bool {
	_, excluded := r.excluded[c.Name]
	_, refused := r.outcomes[c.Name]
	if excluded || refused || c.When.Verdict != program.True || c.Rendering == program.RenderedInvalid {
		return false
	}
	return !slices.ContainsFunc(c.Requires, func(p program.Predicate) bool { return p.Verdict != program.True })
}

// preview returns what the status says while the rollout is on its way: what is in
// sync is judged as it is, and the rest is about to be applied or waits. It is made on a
// copy of the rollout, which goes on as if nobody had asked.
func (r *run) preview(ctx context.Context) status.Completion {
	if r.deleting {
		return status.Completion{Components: r.components(), Change: status.Changed, Deleting: true}
	}
	p := *r
	p.outcomes, p.judged = maps.Clone(r.outcomes), maps.Clone(r.judged)
	p.forecast(ctx, func(ctx context.Context, c program.Component) status.Component {
		if !p.inSync(c.Name) {
			return inProgress(c.Name)
		}
		p.judged[c.Name] = true
		return p.judge(ctx, c)
	})
	return status.Completion{Components: p.components(), Change: status.Changed, Own: r.rollout.Status, Planned: true}
}

// inSync reports whether there is nothing to write for a component.
func (r *run) inSync(component string) bool {
	return !slices.ContainsFunc(r.desired[component], func(d ownership.Desired) bool {
		return !r.over(d) && ownership.Decide(d, r.live[component][d.Object], r.in.Owner).Verb != ownership.Keep
	})
}

// unserved is the outcome of a component one of whose kinds the cluster does not
// know. A skipped one counts as not being there, and keeps what it has.
func (r *run) unserved(component, message string) status.Component {
	if c, _ := r.component(component); c.Unserved == program.UnservedSkip {
		return status.Component{Name: component, State: status.Excluded, Reason: status.ReasonKindNotServed, Message: message}
	}
	return waiting(component, status.ReasonKindNotServed, message)
}

func failed(name string, reason status.Reason, message string) status.Component {
	return status.Component{Name: name, State: status.Failed, Reason: reason, Message: message}
}

// retrying is the outcome of a component that the cluster refused for now, or of a
// rollout that it did not answer.
func retrying(name, message string) status.Component {
	return status.Component{Name: name, State: status.Retrying, Reason: status.ReasonApplyFailed, Message: message}
}

func waiting(name string, reason status.Reason, message string) status.Component {
	return status.Component{Name: name, State: status.Waiting, Reason: reason, Message: message}
}
