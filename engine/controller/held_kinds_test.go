package controller

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestAHeldControllerBeginsOnceItsKindIsReleased(t *testing.T) {
	t.Parallel()
	kind, other := schema.GroupKind{Group: "example.com", Kind: "Thing"}, schema.GroupKind{Group: "example.com", Kind: "Other"}
	for name, row := range map[string]struct {
		reason string
		// do comes after the controller was added, and before it is asked whether it has begun.
		do     func(*heldKinds, context.CancelFunc)
		begins bool
	}{
		"released":          {"what is served is known to be the latest", func(h *heldKinds, _ context.CancelFunc) { h.Release(kind) }, true},
		"released twice":    {"whoever is not sure may release it", func(h *heldKinds, _ context.CancelFunc) { h.Release(kind); h.Release(kind) }, true},
		"withdrawn":         {"it has never reconciled anything", func(_ *heldKinds, stop context.CancelFunc) { stop() }, false},
		"another one":       {"each kind is held by itself", func(h *heldKinds, stop context.CancelFunc) { h.Release(other); stop() }, false},
		"held again, freed": {"a swap of what is followed holds it again", func(h *heldKinds, _ context.CancelFunc) { h.Hold(kind); h.Release(kind) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeldKinds()
			h.Hold(kind)
			h.Hold(other)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			began := false
			part := h.untilReleased(kind, manager.RunnableFunc(func(context.Context) error { began = true; return nil }))
			ended := make(chan error, 1)
			go func() { ended <- part.Start(ctx) }()
			row.do(h, stop)
			if err := <-ended; err != nil || began != row.begins {
				t.Errorf("%s: it has begun: %t, %v", row.reason, began, err)
			}
		})
	}
}

func TestAControllerOfAKindThatIsNotHeldBeginsAtOnce(t *testing.T) {
	t.Parallel()
	h, kind := newHeldKinds(), schema.GroupKind{Group: "example.com", Kind: "Thing"}
	h.Hold(kind)
	h.Release(kind)
	began := false
	part := h.untilReleased(kind, manager.RunnableFunc(func(context.Context) error { began = true; return nil }))
	if err := part.Start(t.Context()); err != nil || !began || h.holds(kind) {
		t.Errorf("it has begun: %t, %v", began, err)
	}
}

func TestWhoStandsByDoesNotDecideAboutPackages(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options            Options
		before, afterwards bool
	}{
		"alone":           {Options{}, true, true},
		"it stands by":    {Options{LeaderElection: true}, false, true},
		"the first shard": {Options{LeaderElection: true, Shard: Shard{0, 2}}, false, true},
		"another shard":   {Options{LeaderElection: true, Shard: Shard{1, 2}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elected := make(chan struct{})
			decides := decidesAboutPackages(row.options, elected)
			before := decides()
			close(elected)
			if after := decides(); before != row.before || after != row.afterwards {
				t.Errorf("it decides before: %t, and after: %t", before, after)
			}
		})
	}
}
