package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/rollout"
)

// strip takes everything off an object that says whose it is, as kubectl replace with
// a file of its own does.
func (b *bench) strip(kind, name string) {
	b.t.Helper()
	u := b.find(kind, name)
	u.SetAnnotations(nil)
	u.SetLabels(nil)
	u.SetOwnerReferences(nil)
	if _, err := b.memory.Put("kubectl", u); err != nil {
		b.t.Fatal(err)
	}
}

// TestE7AStrippedObjectIsKnownToAnotherProcessAndNeverDeletedOnTheInventorysWord covers objects that have no
// reference to their owner in the first place.
func TestE7AStrippedObjectIsKnownToAnotherProcessAndNeverDeletedOnTheInventorysWord(t *testing.T) {
	t.Parallel()
	strip := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, ordered)
		b.rest()
		for kind, names := range map[string][]string{"ConfigMap": {"shop-base", "shop-far"}, "ClusterRole": {"shop-role", "shop-kept"}} {
			for _, name := range names {
				b.strip(kind, name)
			}
		}
		b.restart()
		return b
	}
	t.Run("it is taken back", func(t *testing.T) {
		t.Parallel()
		b := strip(t)
		b.rest()
		b.expect("nothing is somebody else's", "True Ready")
		for _, u := range b.memory.Objects() {
			if u.GetKind() != shopKind.Kind && len(u.GetLabels()) == 0 {
				t.Errorf("%s %s is as it was", u.GetKind(), u.GetName())
			}
		}
	})
	t.Run("its resource is deleted", func(t *testing.T) {
		t.Parallel()
		b := strip(t)
		act(t, b.memory, deleted)
		b.rest()
		if diff := cmp.Diff([]string{"shop-base", "shop-far", "shop-role", "shop-kept"}, b.names(), unordered); diff != "" {
			t.Errorf("what says nothing of its owner stays, and all else goes (-want +got):\n%s", diff)
		}
		for _, name := range []string{"shop-base", "shop-far", "shop-role"} {
			if !slices.ContainsFunc(b.events, func(e rollout.Event) bool { return e.Warning && strings.Contains(e.Message, name) }) {
				t.Errorf("nobody is told that %s stays: %v", name, b.events)
			}
		}
	})
}
