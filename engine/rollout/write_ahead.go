package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// growInventory finds what the inventory has to have before the first write: all that may be
// applied now or later in this rollout. An object that is not complete yet is added as soon as
// its identity is known, so that most rollouts store the inventory once.
func (r *run) growInventory(ctx context.Context) error {
	r.grown = r.grownInventory(ctx)
	if r.fits(r.grown) {
		return r.checkInventory(r.grown)
	}
	if err := r.forgetUnowned(ctx); err != nil {
		return err
	}
	r.grown = r.grownInventory(ctx)
	return r.checkInventory(r.grown)
}

// forgetUnowned removes from an inventory that is too large the entries whose objects are not rendered and do not belong to the resource.
// Anyone who may write the status can name as many as it has room for, which would leave none for the resource's own. Pruning
// does the same, but only after the first write.
func (r *run) forgetUnowned(ctx context.Context) error {
	rendered := r.rendered(ctx)
	d := &deletion{cluster: r.Cluster, owner: r.in.Owner, unwatched: map[schema.GroupVersionKind]bool{}, refusals: map[cluster.Ref]int{}}
	var failure error
	r.inventory = r.inventory.Filtered(func(component string, e ownership.Entry) bool {
		ref := e.Ref(r.in.Owner.Namespace)
		if failure != nil || rendered[ref.Identity()] || !r.mayForget(component, e) {
			return true
		}
		unowned, err := d.unowned(ctx, component, e)
		if !apierrors.IsForbidden(err) || r.mayRender(ref.GroupKind()) {
			failure = err // what the package does not render may be unreadable, and stays
		}
		return !unowned
	})
	r.result.Events, r.notOwned = append(r.result.Events, d.events...), d.notOwned
	if d.moreEntries {
		r.requeueAfter, r.result.MoreEntries = ShortestWait(r.requeueAfter, moreEntriesAgain), true
	}
	return failure
}

// mayForget reports whether an entry says nothing that matters if its object is not there: how it has ended matters while
// its component may still render it.
func (ev *evaluated) mayForget(component string, e ownership.Entry) bool {
	c, exists := ev.component(component)
	_, excluded := ev.excluded[component]
	return e.Ended == ownership.NotFinished || excluded || !exists && !ev.mayBeHook(component) || c.Rendering == program.RenderedComplete
}

// storeInventory stores what growInventory has found. A crash could lose an object that is
// written and not in the inventory.
func (r *run) storeInventory(ctx context.Context) error { return r.storeBeforeWrite(ctx, r.grown) }

// grownInventory returns the inventory with what is to be applied.
func (pr *progress) grownInventory(ctx context.Context) ownership.Inventory {
	var groups []ownership.Group
	for _, c := range pr.rollout.Components {
		if pr.mayBeApplied(c) {
			groups = append(groups, ownership.Group{Component: c.Name, DependsOn: pr.deletedAfter(c.Name), Objects: pr.entries(ctx, c)})
		}
	}
	return pr.inventory.WithGroups(groups...).WithEdges(pr.graph.Dependencies).Ordered(pr.graph.Nodes())
}

// entries returns the inventory's entries of a component's objects. An object has none while
// its scope is unknown because its kind is not served, and if no inventory can hold it, which
// fails its component.
func (ev *evaluated) entries(ctx context.Context, c program.Component) []ownership.Entry {
	var out []ownership.Entry
	for _, o := range c.Objects {
		scope, err := ev.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		if !o.Identity.Known() || err != nil {
			continue
		}
		if e := ownership.EntryOf(o, ev.in.Owner.Namespace, scope); e.Check() == nil {
			out = append(out, e)
		}
	}
	return out
}

// deletedAfter returns the components that are deleted after one. As long as its objects are
// not as the package renders them now, that includes what they depended on before.
func (pr *progress) deletedAfter(component string) []string {
	out := pr.dependencies(component)
	if pr.desired[component] != nil && pr.inSync(component) {
		return out
	}
	for _, g := range pr.inventory {
		for _, to := range g.DependsOn {
			if g.Component == component && !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// withAppliedEdges returns the inventory with the edges of what was applied, which may be fewer than
// before.
func (pr *progress) withAppliedEdges() ownership.Inventory {
	if pr.graph == nil {
		return pr.inventory
	}
	var groups []ownership.Group
	for _, c := range pr.rollout.Components {
		if o := pr.outcomes[c.Name]; o.State == status.Verified || o.State == status.Applied {
			groups = append(groups, ownership.Group{Component: c.Name, DependsOn: pr.dependencies(c.Name)})
		}
	}
	return pr.inventory.WithGroups(groups...).WithEdges(pr.graph.Dependencies)
}

// dependencies returns what a component depends on. In place of a component without objects
// it returns what that one depends on. A hook depends on nothing.
func (ev *evaluated) dependencies(component string) []string {
	return ownership.NearestMatching(component, ev.graph.Dependencies(component), ev.graph.Dependencies, func(name string) bool {
		c, _ := ev.component(name)
		return len(c.Objects) > 0
	})
}

// maxInventory is how many bytes of a status its inventory may take. The API server accepts
// 1.5 MiB for the whole resource, and others may have written most of that.
const maxInventory = 512 << 10

// storeBeforeWrite stores a changed inventory before the first write of what is new in it.
func (r *run) storeBeforeWrite(ctx context.Context, grown ownership.Inventory) error {
	if grown.Equal(r.inventory) {
		return nil
	}
	if err := r.checkInventory(grown); err != nil {
		return err
	}
	ahead := WriteAhead{Inventory: grown, NeedsFinalizer: r.needsFinalizer(grown), Preview: r.previewStatus(ctx), HookStates: r.hookStates()}
	if err := r.in.StoreWriteAhead(ctx, ahead); err != nil {
		return err
	}
	r.inventory = grown
	return nil
}

// checkInventory returns a stopError if the status has no room for a changed inventory, or if
// the engine could not read it back.
func (r *run) checkInventory(grown ownership.Inventory) error {
	if grown.Equal(r.inventory) {
		return nil
	}
	if !r.fits(grown) {
		return stop(status.ReasonStatusTooLarge, fmt.Sprintf("the %d objects that the resource has, or would have, take %d bytes in its status, and %d are the limit", grown.Len(), grown.Size(), maxInventory))
	}
	if err := grown.Check(); err != nil {
		return stop(status.ReasonStatusTooLarge, fmt.Sprintf("the inventory of what the resource has, or would have, %v", err))
	}
	return nil
}

// fits reports whether the status has room for a changed inventory. One that was too large before may change, and a hook may run
// before it goes.
func (r *run) fits(grown ownership.Inventory) bool {
	return r.deleting || grown.Equal(r.inventory) || grown.Size() <= max(maxInventory, r.in.Inventory.Size())
}

// mayBeApplied reports whether a component is applied in this rollout once the components that
// it depends on are.
func (pr *progress) mayBeApplied(c program.Component) bool {
	_, excluded := pr.excluded[c.Name]
	_, done := pr.outcomes[c.Name]
	if excluded || done || c.When.Verdict != program.True || c.Rendering == program.RenderedInvalid {
		return false
	}
	return !slices.ContainsFunc(c.Requires, func(p program.Predicate) bool { return p.Verdict != program.True })
}

// previewStatus returns the status before the first write: a component that is in sync is judged,
// and any other one is being applied or waits.
func (r *run) previewStatus(ctx context.Context) status.Completion {
	patches := effective(r.patchReports())
	if r.deleting {
		return status.Completion{Components: r.components(), Change: status.Changed, Deleting: true, Patches: patches}
	}
	p := *r.progress // the rollout goes on from its own outcomes
	p.outcomes, p.judged = maps.Clone(p.outcomes), maps.Clone(p.judged)
	p.previewOutcomes(ctx, func(ctx context.Context, c program.Component) status.Component {
		if !p.inSync(c.Name) {
			return inProgress(c.Name)
		}
		p.judged[c.Name] = true
		return p.judge(ctx, c)
	})
	return status.Completion{Components: p.components(), Change: status.Changed, Own: r.rollout.Status, Planned: true, Patches: patches}
}
