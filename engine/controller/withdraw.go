package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Withdraw ends the controller of a package, and returns when none of its reconciles runs any more. The
// kind may be served again. Resources that have objects, and are deleted from now on, are torn down by their
// inventory, as those of any package that is missing.
func (m *Manager) Withdraw(ctx context.Context, p *program.Program) error {
	c, err := m.controllerOf(p)
	if err != nil {
		return err
	}
	for _, part := range c.parts {
		if err := part.stop(ctx); err != nil {
			return fmt.Errorf("package %s: waiting for its controller to end: %w", p.Name(), err)
		}
	}
	if c.patches != nil {
		c.as.patches.Remove(c.patches)
	}
	// The watch of the kind is not stopped. The client waits on it for its own writes to appear, and cannot be given
	// another watch if the kind is served again.
	kind := p.GroupVersionKind()
	c.resources.End()
	never := m.held.holds(kind.GroupKind())
	m.release(kind.GroupKind())
	// The controller of a kind that is held has not begun. Until each package has been tried, it may be served again, and is looked for
	// afterwards as any other kind; once that search is over, nothing would look for it.
	if never && !m.packageMissing.searchBegun() {
		c.leave()
		return nil
	}
	m.packageMissing.noteWithdrawn(packageMissingKind{GroupVersionKind: kind, pkg: p.Name(), namespaced: !p.Meta().ClusterScoped, reach: new(p.Reach()), lastAccount: c.as.account})
	c.leave()
	return nil
}

// release makes a kind free for another controller, and ends the metrics of the last one.
func (m *Manager) release(kind schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	measured.Controller(controllerName(kind)).Remove()
	if c := m.controllers[kind]; c != nil {
		c.history.Forget()
	}
	delete(m.controllers, kind)
	delete(m.pins, kind)
	m.held.Release(kind)
}

// abandon ends what has begun of a controller that cannot be added to the manager, and frees its kind.
func (m *Manager) abandon(kind schema.GroupKind, c *packageController) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	for _, part := range c.parts {
		if err := part.stop(ctx); err != nil {
			m.options.Log.Error(err, "a part of a controller did not stop", "kind", kind.String())
		}
	}
	if c.resources != nil {
		c.resources.End()
	}
	c.leave()
	m.release(kind)
}

// addPart adds a part of a controller to the manager, which runs it until the controller is withdrawn.
func (m *Manager) addPart(c *packageController, r manager.Runnable) error {
	part := &stoppable{runnable: r, done: make(chan struct{})}
	c.parts = append(c.parts, part)
	return m.manager.Add(part)
}

// A stoppable is a runnable of a manager that can end before the manager does. A manager that is not
// elected may never start it.
type stoppable struct {
	runnable manager.Runnable
	// done is closed when the runnable has ended, if it has begun.
	done chan struct{}

	mu      sync.Mutex
	cancel  context.CancelFunc
	stopped bool
}

// Start implements manager.Runnable.
func (s *stoppable) Start(ctx context.Context) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.cancel = cancel
	s.mu.Unlock()
	defer close(s.done)
	err := s.runnable.Start(own)
	if own.Err() != nil && ctx.Err() == nil {
		return nil // it was stopped, and its error is that it was
	}
	return err
}

// stop ends the runnable, and waits until it has ended or the context does.
func (s *stoppable) stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	cancel := s.cancel
	s.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
