package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/packages"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// heldKinds are the kinds that a standby process has loaded for reviews and conversions. Once it leads, it reconciles
// them only after it has found out that what it has loaded is the latest decision of the previous leader. Until then,
// their controllers do not start.
type heldKinds struct {
	mu sync.Mutex
	by map[schema.GroupKind]chan struct{}
}

var _ packages.Holds = (*heldKinds)(nil)

func newHeldKinds() *heldKinds { return &heldKinds{by: map[schema.GroupKind]chan struct{}{}} }

// Hold implements packages.Holds.
func (h *heldKinds) Hold(kind schema.GroupKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[kind] == nil {
		h.by[kind] = make(chan struct{})
	}
}

// Release implements packages.Holds.
func (h *heldKinds) Release(kind schema.GroupKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if released := h.by[kind]; released != nil {
		close(released)
		delete(h.by, kind)
	}
}

// holds reports whether a kind is held.
func (h *heldKinds) holds(kind schema.GroupKind) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[kind] != nil
}

// untilReleased returns a runnable that begins once its kind is not held any more.
func (h *heldKinds) untilReleased(kind schema.GroupKind, r manager.Runnable) manager.Runnable {
	h.mu.Lock()
	defer h.mu.Unlock()
	released := h.by[kind]
	if released == nil {
		return r
	}
	return manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-released:
			return r.Start(ctx)
		case <-ctx.Done():
			return nil
		}
	})
}
