package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
)

// memoryStore holds resources whose statuses are written as they are.
type memoryStore struct {
	cluster.Cluster
	of     map[types.NamespacedName]*unstructured.Unstructured
	writes int
}

func (s *memoryStore) GetCached(_ context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if u := s.of[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, nil
}

func (s *memoryStore) ApplyStatus(_ context.Context, u *unstructured.Unstructured) error {
	s.writes++
	s.of[nameOf(u)].Object["status"] = u.DeepCopy().Object["status"]
	return nil
}

func nameOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// A kiosk is a kind of three resources whose package is broken.
type kiosk struct {
	*brokenReporter

	t         *testing.T
	store     *memoryStore
	at        time.Time
	wrong     string
	elsewhere int
}

func newKiosk(t *testing.T) *kiosk {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	k := &kiosk{t: t, store: &memoryStore{of: map[types.NamespacedName]*unstructured.Unstructured{}}, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), wrong: "x.cue:1"}
	for i := range 3 {
		u := watch.NewObject(kind)
		u.SetName(fmt.Sprint("shop-", i))
		u.SetUID(types.UID(u.GetName()))
		u.SetGeneration(1)
		u.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		k.store.of[nameOf(u)] = u
	}
	r := &reconcile.Reconciler{Kind: kind, Resources: k.store, Recorder: unrecorded{}, Now: func() time.Time { return k.at }}
	k.brokenReporter = newBrokenReporter(r, func() string { return k.wrong }, func() { k.elsewhere++ })
	k.now = func() time.Time { return k.at }
	return k
}

// pass takes a step with each resource, and returns the longest time to come again.
func (k *kiosk) pass() time.Duration {
	k.t.Helper()
	var again time.Duration
	for i := range 3 {
		d, err := k.reconcile(k.t.Context(), types.NamespacedName{Name: fmt.Sprint("shop-", i)})
		if err != nil {
			k.t.Fatal(err)
		}
		again = max(again, d)
	}
	return again
}

// disputed returns how many resources say that nobody serves them, or ask whether.
func (k *kiosk) disputed() int {
	n := 0
	for _, u := range k.store.of {
		if reconcile.SaysNotServed(u) {
			n++
		}
	}
	return n
}

// answer does what a process does that serves the resources.
func (k *kiosk) answer() {
	for _, u := range k.store.of {
		if reconcile.SaysNotServed(u) {
			u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration()}
		}
	}
}

func TestResourcesOfABrokenPackageSaySoOnceIfNobodyServesThem(t *testing.T) {
	t.Parallel()
	k := newKiosk(t)
	if again := k.pass(); again != answerTime || k.disputed() != 1 || k.store.writes != 1 {
		t.Fatalf("one is asked about: %d are, with %d writes, again in %s", k.disputed(), k.store.writes, again)
	}
	k.at = k.at.Add(answerTime)
	for range 3 {
		k.pass()
	}
	if k.disputed() != 3 || k.store.writes != 4 || k.elsewhere != 0 {
		t.Errorf("%d say so, with %d writes", k.disputed(), k.store.writes)
	}
	k.wrong = "x.cue:2"
	for range 3 {
		k.pass()
	}
	if k.store.writes != 7 {
		t.Errorf("another fault: %d writes", k.store.writes)
	}
	k.wrong = ""
	k.pass()
	if k.store.writes != 7 {
		t.Error("who serves them by now says all else")
	}
}

func TestResourcesOfABrokenPackageAreLeftToWhoeverAnswers(t *testing.T) {
	t.Parallel()
	k := newKiosk(t)
	k.pass()
	k.answer()
	k.at = k.at.Add(answerTime)
	if again := k.pass(); again != 0 || k.disputed() != 0 || k.store.writes != 1 || k.elsewhere != 1 {
		t.Fatalf("%d say so, with %d writes, again in %s, noticed %d times", k.disputed(), k.store.writes, again, k.elsewhere)
	}
	// It does not notice a new generation, so it is gone.
	k.store.of[types.NamespacedName{Name: "shop-1"}].SetGeneration(2)
	if again := k.pass(); again != observationTime {
		t.Errorf("it has %s", again)
	}
	k.at = k.at.Add(observationTime)
	k.pass()
	k.pass()
	k.at = k.at.Add(answerTime)
	k.pass()
	k.pass()
	if k.disputed() != 3 {
		t.Errorf("%d say that nobody serves them any more", k.disputed())
	}
}

func TestWhoeverTakesBackWhatWasSaidIsAsked(t *testing.T) {
	t.Parallel()
	said := func(t *testing.T) *kiosk {
		t.Helper()
		k := newKiosk(t)
		k.pass()
		k.at = k.at.Add(answerTime)
		k.pass()
		k.pass()
		return k
	}
	t.Run("and who serves them answers", func(t *testing.T) {
		t.Parallel()
		k := said(t)
		k.answer()
		writes := k.store.writes
		k.pass()
		k.answer()
		k.at = k.at.Add(answerTime)
		k.pass()
		if k.disputed() != 0 || k.store.writes != writes+1 || k.elsewhere != 1 {
			t.Errorf("%d say so, with %d more writes", k.disputed(), k.store.writes-writes)
		}
	})
	t.Run("and a person who has changed one status does not", func(t *testing.T) {
		t.Parallel()
		k := said(t)
		delete(k.store.of[types.NamespacedName{Name: "shop-1"}].Object, "status")
		k.pass()
		k.at = k.at.Add(answerTime)
		k.pass()
		k.pass()
		if k.disputed() != 3 || k.elsewhere != 0 {
			t.Errorf("%d say so", k.disputed())
		}
	})
	t.Run("and a resource of the same name is a new one", func(t *testing.T) {
		t.Parallel()
		k := said(t)
		u := k.store.of[types.NamespacedName{Name: "shop-1"}]
		u.SetUID("another")
		delete(u.Object, "status")
		writes := k.store.writes
		k.pass()
		if k.disputed() != 3 || k.store.writes != writes+1 {
			t.Errorf("%d say so, with %d more writes", k.disputed(), k.store.writes-writes)
		}
	})
	t.Run("and one that was paused was never told", func(t *testing.T) {
		t.Parallel()
		k := newKiosk(t)
		paused := k.store.of[types.NamespacedName{Name: "shop-1"}]
		paused.SetAnnotations(map[string]string{reconcile.AnnotationPaused: "true"})
		k.pass()
		k.at = k.at.Add(answerTime)
		k.pass()
		k.pass()
		paused.SetAnnotations(nil)
		k.pass()
		if k.disputed() != 3 || k.elsewhere != 0 {
			t.Errorf("%d say so", k.disputed())
		}
	})
}

func TestPausedResourceIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	k := newKiosk(t)
	for _, u := range k.store.of {
		u.SetAnnotations(map[string]string{reconcile.AnnotationPaused: "true"})
	}
	if again := k.pass(); again != 0 || k.store.writes != 0 {
		t.Errorf("%d writes, again in %s", k.store.writes, again)
	}
}

// forbiddenStore is a store whose statuses the operator may not write.
type forbiddenStore struct{ *memoryStore }

func (forbiddenStore) ApplyStatus(context.Context, *unstructured.Unstructured) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "shops"}, "shop-0", errors.New("no"))
}

// counted counts events.
type counted struct{ events int }

func (c *counted) Record(*unstructured.Unstructured, rollout.Event) { c.events++ }

func TestWhatIsKnownOfAResourceOfABrokenPackageIsForgottenWithIt(t *testing.T) {
	t.Parallel()
	k, recorded := newKiosk(t), &counted{}
	k.reconciler.Resources, k.reconciler.Recorder = forbiddenStore{k.store}, recorded
	s := &packageMissingTeardown{brokenLimiter: flowcontrol.NewFakeAlwaysRateLimiter()}
	key := types.NamespacedName{Name: "shop-0"}
	once := func() { _, _ = s.reconcileBroken(k.reconciler, k.brokenReporter)(t.Context(), key) } // the error is that of the store
	once()
	once()
	if recorded.events != 1 {
		t.Fatalf("%d events say that the status cannot be written, want 1", recorded.events)
	}
	shop := k.store.of[key]
	delete(k.store.of, key)
	once()
	k.store.of[key] = shop
	once()
	if recorded.events != 2 {
		t.Errorf("%d events after another resource of the name, want 2", recorded.events)
	}
}

// A change of a package that is broken concerns all its resources, and a person who deletes one waits for it.
func TestADeletionDoesNotWaitForTheReportsOfABrokenPackage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		change  func(*kiosk, types.NamespacedName)
		limited bool
	}{
		"there is one":  {"it reports, as all others do", func(*kiosk, types.NamespacedName) {}, true},
		"it is deleted": {"it is torn down, or left to others, at once", func(k *kiosk, key types.NamespacedName) { k.store.of[key].SetDeletionTimestamp(new(metav1.Now())) }, false},
		"it is gone":    {"what is known of it is forgotten", func(k *kiosk, key types.NamespacedName) { delete(k.store.of, key) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, key := newKiosk(t), types.NamespacedName{Name: "shop-0"}
			row.change(k, key)
			s := &packageMissingTeardown{manager: &Manager{options: Options{PackageMissing: LeaveWithoutPackage}}, brokenLimiter: flowcontrol.NewFakeNeverRateLimiter()}
			_, err := s.reconcileBroken(k.reconciler, k.brokenReporter)(t.Context(), key)
			if limited := err != nil; limited != row.limited {
				t.Errorf("%s: limited is %v: %v", row.reason, limited, err)
			}
		})
	}
}
