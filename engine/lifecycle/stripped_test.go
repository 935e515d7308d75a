package lifecycle_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestE7AStrippedObjectIsKnownByItsUIDAlsoToAnotherProcess covers objects that have no
// reference to their owner in the first place.
func TestE7AStrippedObjectIsKnownByItsUIDAlsoToAnotherProcess(t *testing.T) {
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
	t.Run("it is deleted", func(t *testing.T) {
		t.Parallel()
		b := strip(t)
		act(t, b.memory, deleted)
		b.rest()
		left := b.memory.Objects()
		kept := func(u *unstructured.Unstructured) bool { return u.GetName() == "shop-kept" }
		if len(left) != 1 || !kept(left[0]) {
			t.Errorf("left behind: %v", b.memory.Refs())
		}
	})
}
