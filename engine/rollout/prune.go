package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// prune deletes what the inventory has and the package no longer renders.
//
// An evaluation that renders nothing at all deletes nothing unless the when of a component is
// false: a package that lost its components or their objects by mistake must not delete the
// running ones.
func (r *run) prune(ctx context.Context) error {
	unwanted := r.unwanted(ctx)
	if len(unwanted) == 0 {
		return nil
	}
	if r.rendersNothing() {
		return stop(status.ReasonPruneRefused, fmt.Sprintf("the package renders no object, and %d exist; they are left alone", r.inventory.Len()))
	}
	d := &deletion{cluster: r.Cluster, owner: r.in.Owner, inventory: r.inventory, unwanted: unwanted, notOwned: r.notOwned}
	d.run(ctx)
	r.inventory = d.inventory
	r.result.Events = append(r.result.Events, d.events...)
	r.failures = append(r.failures, d.failures...)
	r.requeueAfter = ShortestWait(r.requeueAfter, d.requeueAfter)
	r.result.Completion.Pruning = d.message()
	r.result.Completion.Refused, r.result.MoreEntries = len(d.refused) > 0, r.result.MoreEntries || d.moreEntries
	if len(d.events) > 0 {
		r.change = status.Changed
	}
	return nil
}

// rendersNothing reports whether there is neither a rendered object nor an excluded component.
func (ev *evaluated) rendersNothing() bool {
	return len(ev.excluded) == 0 && !slices.ContainsFunc(ev.rollout.Components, func(c program.Component) bool { return len(c.Objects) > 0 })
}

// unwanted returns the entries to delete. An object that its component no longer renders is
// deleted only after the component was applied: create before delete. An object that another
// component renders has moved, and stays even while that component may not be applied.
func (pr *progress) unwanted(ctx context.Context) map[ownership.Entry]bool {
	out := map[ownership.Entry]bool{}
	rendered := pr.rendered(ctx)
	for _, g := range pr.inventory {
		c, exists := pr.component(g.Component)
		_, excluded := pr.excluded[g.Component]
		gone, applied := !exists && !pr.mayBeHook(g.Component) || excluded, pr.applied(c)
		if !gone && !applied {
			continue
		}
		desired := map[cluster.Ref]bool{}
		for _, d := range pr.desired[g.Component] {
			desired[d.Ref().Identity()] = true
		}
		for _, e := range g.Objects {
			ref := e.Ref(pr.in.Owner.Namespace).Identity()
			if (gone || !desired[ref]) && !rendered[ref] {
				out[e] = true
			}
		}
	}
	return out
}

// rendered returns the identities of the objects of all components that should exist.
func (ev *evaluated) rendered(ctx context.Context) map[cluster.Ref]bool {
	out := map[cluster.Ref]bool{}
	for _, c := range ev.rollout.Components {
		if _, excluded := ev.excluded[c.Name]; excluded {
			continue
		}
		for _, o := range c.Objects {
			if o.Identity.Known() {
				out[ev.refOf(ctx, o).Identity()] = true
			}
		}
	}
	return out
}

// mayBeHook reports whether a component that the evaluation does not list may be a hook whose name
// is not known yet.
func (ev *evaluated) mayBeHook(component string) bool {
	return slices.ContainsFunc(ev.rollout.Hooks, func(h program.Hook) bool { return h.MayBe(component) })
}

// applied reports whether a component was applied in this rollout: what the inventory has of it beyond
// what is desired, it does not render any more.
func (pr *progress) applied(c program.Component) bool {
	o := pr.outcomes[c.Name]
	return c.Rendering == program.RenderedComplete && (o.State == status.Verified || o.State == status.Applied)
}

// Teardown deletes everything in an inventory, dependents first, and returns what is left of it.
// It needs no package. It errors when the cluster refused a deletion; retry it then.
func Teardown(ctx context.Context, c cluster.Cluster, owner ownership.Owner, inventory ownership.Inventory) (Result, error) {
	unwanted := map[ownership.Entry]bool{}
	for _, e := range inventory.Entries() {
		unwanted[e] = true
	}
	d := &deletion{cluster: c, owner: owner, inventory: inventory, unwanted: unwanted, teardown: true}
	d.run(ctx)
	out := Result{Inventory: d.inventory, Events: d.events, RequeueAfter: d.requeueAfter, MoreEntries: d.moreEntries}
	out.Completion = status.Completion{Deleting: true, Pruning: d.message(), Change: status.Changed}
	out.Completion.Components = d.components()
	return out, errors.Join(d.failures...)
}

// components returns the components that are left: first those that something holds, which a
// person has to look at, then those that wait for them.
func (d *deletion) components() []status.Component {
	var held, later []status.Component
	for _, g := range d.inventory {
		c := status.Component{Name: g.Component, State: status.Deleting, Reason: status.ReasonDeleting, Message: status.List(d.waits[g.Component])}
		switch {
		case d.refused[g.Component]:
			c.Reason = status.ReasonDeleteFailed
		case len(d.blocked[g.Component]) > 0:
			c.Reason, c.WaitsFor = status.ReasonObjectGoing, d.blocked[g.Component]
			later = append(later, c)
			continue
		}
		held = append(held, c)
	}
	return append(held, later...)
}
