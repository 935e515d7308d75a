package controller

import (
	"context"
	"fmt"

	"operetta.dev/engine/program"
)

// Swap makes the controller of a package use another version of it, and reconciles
// every custom resource with that. It errors, and changes nothing, if the new
// version has another kind; and if the resources cannot be listed, which are reconciled with the new version once they can be.
func (m *Manager) Swap(ctx context.Context, was, p *program.Program) error {
	if got, want := p.GroupVersionKind(), was.GroupVersionKind(); got != want {
		return fmt.Errorf("package %s serves %s now, and %s before; start the operator anew", p.Name(), got, want)
	}
	c, err := m.controllerOf(was)
	if err != nil {
		return err
	}
	if canary := c.canary.Load(); canary != nil && canary.by.Program == p {
		c.use(canary.by, "") // it has the templates
	} else {
		c.use(m.takePrepared(p), "")
	}
	c.canary.Store(nil)
	m.certificates.wake() // it may have other versions
	return m.enqueueAll(ctx, c)
}

// ReportOutdated notes what is wrong with the current files of a loaded package; "" stands for nothing. The status of
// each of its resources says so.
func (m *Manager) ReportOutdated(ctx context.Context, p *program.Program, fault string) error {
	c, err := m.controllerOf(p)
	if err != nil || c.fault.Swap(fault) == fault {
		return err
	}
	return m.enqueueAll(ctx, c)
}
