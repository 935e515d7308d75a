package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/packages"
)

// pinnedVersions are the versions of a package that its resources may be pinned to.
type pinnedVersions struct {
	packages.Pins

	by map[string]*evaluate.Evaluator
}

// Pins says which versions the resources of a kind may be pinned to, and reconciles all of them. It may come before the
// controller of the kind.
func (m *Manager) Pins(ctx context.Context, kind schema.GroupKind, pins packages.Pins) error {
	next := m.notePins(kind, pins)
	c := m.controller(kind)
	if c == nil {
		return nil
	}
	c.pins.Store(next)
	return m.enqueueAll(ctx, c)
}

// notePins notes the pins of a kind for its controller. The evaluators of versions that are served already stay.
func (m *Manager) notePins(kind schema.GroupKind, pins packages.Pins) *pinnedVersions {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !pins.Allowed {
		delete(m.pins, kind)
		return nil
	}
	next := &pinnedVersions{Pins: pins, by: map[string]*evaluate.Evaluator{}}
	for digest, p := range pins.Programs {
		if was := m.pins[kind]; was != nil && was.by[digest] != nil && was.by[digest].Program == p {
			next.by[digest] = was.by[digest]
			continue
		}
		next.by[digest] = evaluate.New(p, m.evaluateOptions(p))
	}
	m.pins[kind] = next
	return next
}

// version returns the version that a pin names, or nil and why there is none; "" if it is not known yet.
func (p *pinnedVersions) version(digest string, served *evaluate.Evaluator) (*evaluate.Evaluator, string) {
	if served.Digest() == digest {
		return served, ""
	}
	if by := p.by[digest]; by != nil {
		return by, ""
	}
	return nil, p.Why(digest)
}
