package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// deleteWithoutPackage deletes the resource of a bench, and makes its deletion an age old.
func (b *bench) deleteWithoutPackage(age time.Duration) {
	b.t.Helper()
	act(b.t, b.memory, deleted)
	b.restart()
	b.now = b.find("Shop", shopKey.Name).GetDeletionTimestamp().Add(age)
}

// restWithoutPackage steps without the package until nothing changes any more.
func (b *bench) restWithoutPackage() time.Duration {
	b.t.Helper()
	for range 40 {
		before := len(b.memory.Changes())
		again, err := b.reconciler.ReconcilePackageMissing(b.t.Context(), shopKey)
		if err != nil {
			b.t.Fatal(err)
		}
		b.memory.CollectGarbage()
		if len(b.memory.Changes()) == before {
			return again
		}
		b.now = b.now.Add(5 * time.Second)
	}
	b.t.Fatal("it does not come to rest")
	return 0
}

func (b *bench) heard(reason string) int {
	n := 0
	for _, e := range b.events {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

const old = time.Minute

func TestG2AResourceWithoutItsPackageIsTornDownFromItsInventoryInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.deleteWithoutPackage(old)
	b.restWithoutPackage()
	if diff := cmp.Diff([]string{"shop-top", "shop-role", "shop-far", "shop-base", "my"}, b.deletions(), unordered); diff != "" {
		t.Errorf("everything goes but what is to be left behind (-want +got):\n%s", diff)
	}
	if d := b.deletions(); len(d) < 2 || d[len(d)-2] != "shop-base" || d[0] == "shop-base" {
		t.Errorf("G1: what others depend on goes last: %v", d)
	}
}

// Who may write the status of a resource can name objects anywhere.
func TestAResourceWithoutItsPackageIsTornDownAsFarAsItMayReachOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.deleteWithoutPackage(old)
	b.reconciler.ReachWithoutPackage = &program.Reach{}
	b.restWithoutPackage()
	if diff := cmp.Diff([]string{"shop-top", "shop-base", "my"}, b.deletions(), unordered); diff != "" {
		t.Errorf("what is not in its namespace is left (-want +got):\n%s", diff)
	}
}

func TestAResourceWithoutItsPackageThatIsNotDeletedIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	top := b.find("ConfigMap", "shop-top")
	if err := b.memory.Delete(t.Context(), cluster.RefOf(top), top.GetUID()); err != nil {
		t.Fatal(err)
	}
	before := len(b.memory.Changes())
	b.restart()
	if again := b.restWithoutPackage(); again != 0 || len(b.memory.Changes()) != before {
		t.Errorf("without the package nothing is repaired: %v, again in %s", b.memory.Changes()[before:], again)
	}
}

func TestAResourceWithoutItsPackageIsLeftToWhoeverRunsItsPackageAtFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.deleteWithoutPackage(3 * time.Second)
	before := len(b.memory.Changes())
	if again := b.restWithoutPackage(); again != 7*time.Second || len(b.memory.Changes()) != before {
		t.Errorf("another process may be in the middle of a rollout: %v, again in %s", b.memory.Changes()[before:], again)
	}
	b.now = b.now.Add(7 * time.Second)
	b.restWithoutPackage()
	if left := b.find("Shop", shopKey.Name); left != nil {
		t.Errorf("nobody came: %v", left.Object["status"])
	}
}

func TestAResourceWithoutItsPackageIsHeldWhileHooksBeforeItsDeletionAreDue(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, guarded)
		b.rest()
		completeJobs(t, b.memory)
		b.rest()
		return b
	}
	held := func(t *testing.T, b *bench) {
		t.Helper()
		before := len(b.deletions())
		if again := b.restWithoutPackage(); again != 0 {
			t.Errorf("it comes again in %s without an event", again)
		}
		b.restWithoutPackage()
		b.expect("it says what to do", "False PackageMissing", "this operator does not run package shop", reconcile.AnnotationSkipHooks)
		if got := b.status()["phase"]; got != string(status.PhaseDeleting) {
			t.Errorf("phase %v", got)
		}
		if n := b.heard("DeletionHeld"); n != 1 || len(b.deletions()) != before {
			t.Errorf("%d events, deleted %v", n, b.deletions()[before:])
		}
	}
	gone := func(t *testing.T, b *bench) {
		t.Helper()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	t.Run("until a person skips them", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		b.deleteWithoutPackage(old)
		held(t, b)
		b.expect("it names the hook", "False PackageMissing", "hooks.beforeDelete.backup")
		annotate(t, b.memory, reconcile.AnnotationSkipHooks, "true")
		b.restWithoutPackage()
		gone(t, b)
	})
	t.Run("until the package is back, which runs them", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		b.deleteWithoutPackage(old)
		held(t, b)
		b.rest()
		if b.find("ConfigMap", "web") == nil || len(objects(t, b.memory, "Job")) != 2 {
			t.Fatalf("the hook does not run first: %v", b.memory.Refs())
		}
		completeJobs(t, b.memory)
		b.rest()
		gone(t, b)
	})
	t.Run("also when the package went while one was running", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		act(t, b.memory, deleted)
		b.rest()
		b.deleteWithoutPackage(old)
		held(t, b)
	})
	t.Run("also when one has failed", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		act(t, b.memory, deleted)
		b.rest()
		endJobs(t, b.memory, "Failed")
		b.rest()
		b.deleteWithoutPackage(old)
		held(t, b)
	})
	t.Run("also when its status was lost", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		act(t, b.memory, deleted)
		b.wipe()
		b.restart()
		b.now = b.find("Shop", shopKey.Name).GetDeletionTimestamp().Add(old)
		b.restWithoutPackage()
		b.expect("nobody knows whether there are hooks", "False PackageMissing", "its status was lost", reconcile.AnnotationSkipHooks)
		if b.find("ConfigMap", "web") == nil {
			t.Error("an object went although there is a hook")
		}
	})
}

func TestHooksBeforeDeletionAreKnownBeforeTheFirstObject(t *testing.T) {
	t.Parallel()
	b := newBench(t, guarded)
	store := b.note()
	if _, err := b.step(); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"name": "hooks.beforeDelete.backup", "state": "Waiting"}}
	if diff := cmp.Diff(want, store.wrote[0]["hooks"]); diff != "" {
		t.Errorf("a process without the package has to know as soon as there are objects (-want +got):\n%s", diff)
	}
	b.load(strings.Replace(guarded, "beforeDelete: backup:", "afterVerify: backup:", 1))
	b.rest()
	completeJobs(t, b.memory)
	b.rest()
	b.deleteWithoutPackage(old)
	b.restWithoutPackage()
	if left := b.memory.Refs(); len(left) != 0 || b.heard("DeletionHeld") != 0 {
		t.Errorf("the package has no such hook any more: left %v", left)
	}
}

// notingStore notes what statuses are written, and over which version of a resource.
type notingStore struct {
	cluster.Cluster
	wrote []map[string]any
	over  []string
}

// note makes a bench note what it writes.
func (b *bench) note() *notingStore {
	s := &notingStore{Cluster: b.reconciler.Resources}
	b.reconciler.Resources = s
	return s
}

// ApplyStatus implements cluster.Cluster.
func (s *notingStore) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	s.wrote, s.over = append(s.wrote, status), append(s.over, u.GetResourceVersion())
	return s.Cluster.ApplyStatus(ctx, u)
}

func TestTheStatusOfAResourceWithoutItsPackageIsWrittenOverTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, guarded)
	b.rest()
	b.deleteWithoutPackage(old)
	store := b.note()
	read := b.find("Shop", shopKey.Name).GetResourceVersion()
	b.restWithoutPackage()
	if diff := cmp.Diff([]string{read}, store.over); diff != "" || read == "" {
		t.Errorf("another process may have noted that a hook has run (-want +got):\n%s", diff)
	}
	store.over = nil
	b.rest()
	for _, v := range store.over {
		if v != "" {
			t.Errorf("whoever runs the package is right: written over %s", v)
		}
	}
}
