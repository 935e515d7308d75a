package reconcile_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster/memory"
)

// withoutFinalizers is a cluster that takes no finalizers.
type withoutFinalizers struct{ *memory.Cluster }

// ApplyFinalizers implements cluster.Cluster.
func (withoutFinalizers) ApplyFinalizers(context.Context, *unstructured.Unstructured) error {
	return errAway
}

// The queue uses a wait that comes with an error, in place of the growing delays after errors. An error
// without a reason to wait must not be retried at once, again and again.
func TestAnErrorOfTheClusterIsRetriedByTheQueue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		reconcile func(*bench) (time.Duration, error)
	}{
		"a resource that cannot be read, without its package": {"nothing of it is known", func(b *bench) (time.Duration, error) {
			b.reconciler.Resources = unread{b.memory}
			return b.reconciler.ReconcilePackageMissing(b.t.Context(), shopKey)
		}},
		"a resource that cannot be read": {"the API server does not answer", func(b *bench) (time.Duration, error) {
			b.reconciler.Resources = unread{b.memory}
			return b.reconciler.Reconcile(b.t.Context(), shopKey, b.program)
		}},
		"a status that can be neither read nor written": {"what is wrong is not told yet", func(b *bench) (time.Duration, error) {
			b.edit(func(s map[string]any) { s["inventory"] = "nothing" })
			b.reconciler.Resources = mute{b.memory}
			return b.reconciler.Reconcile(b.t.Context(), shopKey, b.program)
		}},
		"a finalizer that cannot be put": {"somebody has removed it", func(b *bench) (time.Duration, error) {
			cr := b.find("Shop", shopKey.Name)
			cr.SetFinalizers(nil)
			if _, err := b.memory.Put("person", cr); err != nil {
				b.t.Fatal(err)
			}
			b.reconciler.Resources = withoutFinalizers{b.memory}
			return b.reconciler.Reconcile(b.t.Context(), shopKey, b.program)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ordered)
			b.rest()
			if again, err := row.reconcile(b); again != 0 || err == nil {
				t.Errorf("%s: again in %s, error %v, want an error alone", row.reason, again, err)
			}
		})
	}
}

func TestAResourceThatIsGoneIsNotLookedAtAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	if again, err := b.reconciler.Reconcile(t.Context(), types.NamespacedName{Namespace: shopKey.Namespace, Name: "gone"}, b.program); again != 0 || err != nil {
		t.Errorf("again in %s, error %v", again, err)
	}
}

// searching counts how often the objects of a resource are searched for.
type searching struct {
	*memory.Cluster

	times int
}

// Owned implements cluster.Cluster.
func (s *searching) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	s.times++
	return s.Cluster.Owned(ctx, namespace, label, value)
}

// A search is one list for each kind that there is.
func TestObjectsAreSearchedForOnlyAfterTheInventoryWasLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}`)
	s := &searching{Cluster: b.memory}
	b.reconciler.Cluster = s
	b.rest()
	if s.times != 0 {
		t.Errorf("a resource that is new has no objects, and they were searched for %d times", s.times)
	}
	cr := b.find("Shop", shopKey.Name)
	if cr.GetGeneration() != 1 || len(cr.GetFinalizers()) > 0 {
		t.Fatalf("it has generation %d and the finalizers %v", cr.GetGeneration(), cr.GetFinalizers())
	}
	unstructured.RemoveNestedField(cr.Object, "status", "inventory")
	if _, err := b.memory.Put("backup", cr); err != nil {
		t.Fatal(err)
	}
	b.rest()
	if s.times != 1 || len(inventory(t, b.status())) != 1 {
		t.Errorf("its status says that it was reconciled; it was searched for %d times, and the inventory is %v", s.times, b.status()["inventory"])
	}
}
