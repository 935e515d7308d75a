package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/program"
)

// A canaryVersion is a version of a package that some resources are reconciled with.
type canaryVersion struct {
	by      *evaluate.Evaluator
	selects func(packages.Resource) bool
}

// canaryVersion returns what a controller needs of a canary, or nil. The evaluator of one that goes on stays: it has
// the templates.
func (m *Manager) canaryVersion(c *packageController, of *packages.Canary) *canaryVersion {
	if of == nil {
		return nil
	}
	if was := c.canary.Load(); was != nil && was.by.Program == of.Program {
		return &canaryVersion{was.by, of.Selects}
	}
	return &canaryVersion{m.takePrepared(of.Program), of.Selects}
}

// Canary makes the controller of a package reconcile some resources with another version, and with nil, all of them with the
// one that is served.
func (m *Manager) Canary(ctx context.Context, p *program.Program, of *packages.Canary) error {
	c, err := m.controllerOf(p)
	if err != nil {
		return err
	}
	if of != nil && of.Program.GroupVersionKind().GroupKind() != p.GroupVersionKind().GroupKind() {
		return fmt.Errorf("package %s: the canary serves %s, and the package %s", p.Name(), of.Program.GroupVersionKind().GroupKind(), p.GroupVersionKind().GroupKind())
	}
	c.canary.Store(m.canaryVersion(c, of))
	return m.enqueueAll(ctx, c)
}

// Requeue has resources of a package reconciled behind those that events enqueue.
func (m *Manager) Requeue(p *program.Program, resources []packages.Resource) error {
	c, err := m.controllerOf(p)
	if err != nil {
		return err
	}
	for _, u := range resources {
		c.enqueueForPackage(u.NamespacedName)
	}
	return nil
}

// A choice is the version of a package that a resource is reconciled with.
type choice struct {
	// by is nil if there is none: why says why, or is "" if it is not known yet.
	by  *evaluate.Evaluator
	why string
}

// choose returns the version of the package that a resource is reconciled with. It reads the cache, and only if there are several.
func (c *packageController) choose(ctx context.Context, key types.NamespacedName) (choice, error) {
	served, canary, pins := c.program.Load(), c.canary.Load(), c.pins.Load()
	if canary == nil && pins == nil {
		return choice{by: served}, nil
	}
	u, err := c.reconciler.Resources.GetCached(ctx, cluster.Ref{GroupVersionKind: c.reconciler.Kind, Namespace: key.Namespace, Name: key.Name})
	if err != nil || u == nil {
		return choice{by: served}, err
	}
	resource := resourceOf(u)
	if pins == nil {
		resource.Pin = "" // it has no effect
	}
	if resource.Pin != "" {
		by, why := pins.version(resource.Pin, served)
		if by == nil && why != "" && resource.Deleted {
			by = served // what it has must not stay for ever; a version that is being loaded comes
		}
		return choice{by, why}, nil
	}
	if canary != nil && canary.selects(resource) {
		return choice{by: canary.by}, nil
	}
	return choice{by: served}, nil
}
