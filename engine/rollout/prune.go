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

// prune deletes what the inventory holds and the package no longer renders.
//
// An evaluation that renders nothing at all deletes nothing, unless a component says
// so by its when: a package that lost its components or their objects by mistake must
// not take the running ones with it.
func (r *run) prune(ctx context.Context) error {
	doomed := r.toDelete(ctx)
	if len(doomed) == 0 {
		return nil
	}
	if r.rendersNothing() {
		return stop(status.ReasonPruneRefused, fmt.Sprintf("the package renders no object, and %d exist; they are left alone", r.inventory.Len()))
	}
	d := &deletion{cluster: r.Cluster, owner: r.in.Owner, inventory: r.inventory, doomed: doomed}
	d.deletePass(ctx)
	r.inventory = d.inventory
	r.result.Events = append(r.result.Events, d.events...)
	r.failures = append(r.failures, d.failures...)
	r.requeueAfter = sooner(r.requeueAfter, d.again)
	r.result.Completion.Pruning = d.message()
	r.result.Completion.Refused = len(d.refused) > 0
	if len(d.events) > 0 {
		r.change = status.Changed
	}
	return nil
}

// rendersNothing reports whether there is neither an object nor a component that was
// switched off.
func (ev *evaluated) rendersNothing() bool {
	return len(ev.excluded) == 0 && !slices.ContainsFunc(ev.rollout.Components, func(c program.Component) bool { return len(c.Objects) > 0 })
}

// toDelete returns the entries to delete. What a component does not render any
// more goes only after the component was applied: create before delete. What another
// one renders has moved, and stays also as long as that may not be applied.
func (pr *progress) toDelete(ctx context.Context) map[ownership.Entry]bool {
	out := map[ownership.Entry]bool{}
	rendered := pr.rendered(ctx)
	for _, g := range pr.inventory {
		c, exists := pr.component(g.Component)
		_, excluded := pr.excluded[g.Component]
		for _, e := range g.Objects {
			left := !exists && !pr.unlisted(g.Component) || excluded || pr.rendersNoMore(c, e)
			if left && !rendered[e.Ref(pr.in.Owner.Namespace).Identity()] {
				out[e] = true
			}
		}
	}
	return out
}

// rendered returns the objects of all components that should exist.
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

// unlisted reports whether a component that the evaluation does not show may be a hook
// all the same.
func (ev *evaluated) unlisted(component string) bool {
	return slices.ContainsFunc(ev.rollout.Hooks, func(h program.Hook) bool { return h.StandsFor(component) })
}

// rendersNoMore reports whether a component that was applied in this rollout has
// left an object out.
func (pr *progress) rendersNoMore(c program.Component, e ownership.Entry) bool {
	o := pr.outcomes[c.Name]
	if c.Rendering != program.RenderedComplete || (o.State != status.Verified && o.State != status.Applied) {
		return false
	}
	ref := e.Ref(pr.in.Owner.Namespace).Identity()
	return !slices.ContainsFunc(pr.desired[c.Name], func(d ownership.Desired) bool { return d.Ref().Identity() == ref })
}

// Teardown deletes everything in an inventory, dependents first, and returns what
// is left of it. It needs no package. It errors when the cluster refused a
// deletion, which is then to be tried again.
func Teardown(ctx context.Context, c cluster.Cluster, owner ownership.Owner, inventory ownership.Inventory) (Result, error) {
	doomed := map[ownership.Entry]bool{}
	for _, g := range inventory {
		for _, e := range g.Objects {
			doomed[e] = true
		}
	}
	d := &deletion{cluster: c, owner: owner, inventory: inventory, doomed: doomed, teardown: true}
	d.deletePass(ctx)
	out := Result{Inventory: d.inventory, Events: d.events, RequeueAfter: d.again}
	out.Completion = status.Completion{Deleting: true, Pruning: d.message(), Change: status.Changed}
	out.Completion.Components = d.components()
	return out, errors.Join(d.failures...)
}

// components returns what is left of each component: first those that something
// holds, which is what a person has to look at, then those that wait for them.
func (d *deletion) components() []status.Component {
	var held, later []status.Component
	for _, g := range d.inventory {
		c := status.Component{Name: g.Component, State: status.Deleting, Reason: status.ReasonDeleting, Message: status.List(d.waits[g.Component])}
		switch {
		case d.refused[g.Component]:
			c.Reason = status.ReasonDeleteFailed
		case len(d.later[g.Component]) > 0:
			c.Reason, c.WaitsFor = status.ReasonObjectGoing, d.later[g.Component]
			later = append(later, c)
			continue
		}
		held = append(held, c)
	}
	return append(held, later...)
}
