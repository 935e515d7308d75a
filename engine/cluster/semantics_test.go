package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/test/clustertest"
	"operetta.dev/test/machine"
)

func TestApplyingTheSameAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	first := apply(t, s, parse(t, s, deployment))
	again := apply(t, s, parse(t, s, deployment))
	if first.GetResourceVersion() != again.GetResourceVersion() {
		t.Errorf("the resource version changed from %s to %s", first.GetResourceVersion(), again.GetResourceVersion())
	}
	if got := s.Find(first.GroupVersionKind(), "web"); got.GetUID() != first.GetUID() || got.GetUID() == "" {
		t.Errorf("the object that is there is %s, and what was applied %q", got.GetUID(), first.GetUID())
	}
	expectEvents(t, s, "one write", "create Deployment web")
}

func TestAListMergesByItsKeys(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	theirs := apply(t, s, parse(t, s, deployment))
	containers, _, _ := unstructured.NestedSlice(theirs.Object, "spec", "template", "spec", "containers")
	set(t, theirs, append(containers, map[string]any{"name": "sidecar", "image": "s:1"}), "spec", "template", "spec", "containers")
	s.Put("injector", theirs)
	last := apply(t, s, parse(t, s, deployment))
	if containers, _, _ = unstructured.NestedSlice(last.Object, "spec", "template", "spec", "containers"); len(containers) != 2 {
		t.Errorf("got containers %v, want the injected one kept", containers)
	}
	if last.GetGeneration() != 2 {
		t.Errorf("got generation %d, want 2: the spec changed once", last.GetGeneration())
	}
	expectEvents(t, s, "the last apply says nothing new", "create Deployment web", "update Deployment web")
}

func TestFieldsBelongToWhoWroteThemLast(t *testing.T) {
	t.Parallel()
	type step func(t *testing.T, s *clustertest.Site)
	ours := func(data map[string]any) step {
		return func(t *testing.T, s *clustertest.Site) {
			t.Helper()
			u := parse(t, s, configMap)
			u.Object["data"] = data
			apply(t, s, u)
		}
	}
	theirs := func(k string, v any) step {
		return func(t *testing.T, s *clustertest.Site) {
			t.Helper()
			u := live(s, parse(t, s, configMap))
			set(t, u, v, "data", k)
			s.Put("somebody", u)
		}
	}
	for name, row := range map[string]struct {
		reason string
		steps  []step
		want   map[string]any
	}{
		"a field that is applied no longer": {
			reason: "nobody else owns it",
			steps:  []step{ours(map[string]any{"k": "v", "l": "w"}), ours(map[string]any{"k": "v"})},
			want:   map[string]any{"k": "v"},
		},
		"a field that somebody changed": {
			reason: "the apply is forced",
			steps:  []step{ours(map[string]any{"k": "v"}), theirs("k", "x"), ours(map[string]any{"k": "v"})},
			want:   map[string]any{"k": "v"},
		},
		"a field that somebody changed and that is applied no longer": {
			reason: "it is theirs now",
			steps:  []step{ours(map[string]any{"k": "v", "l": "w"}), theirs("l", "x"), ours(map[string]any{"k": "v"})},
			want:   map[string]any{"k": "v", "l": "x"},
		},
		"a field that somebody added": {
			reason: "it never was ours",
			steps:  []step{ours(map[string]any{"k": "v"}), theirs("l", "x"), ours(map[string]any{"k": "v"})},
			want:   map[string]any{"k": "v", "l": "x"},
		},
		"a field that somebody wrote with the same value": {
			reason: "who changes nothing owns nothing new",
			steps:  []step{ours(map[string]any{"k": "v", "l": "w"}), theirs("l", "w"), ours(map[string]any{"k": "v"})},
			want:   map[string]any{"k": "v"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			for _, step := range row.steps {
				step(t, s)
			}
			if diff := cmp.Diff(row.want, field(live(s, parse(t, s, configMap)), "data")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatIsRelinquishedStaysWithoutAnOwner(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	u := apply(t, s, parse(t, s, deployment))
	fields := parse(t, s, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}`)
	fields.SetUID(u.GetUID())
	if err := s.HandOver(t.Context(), fields); err != nil {
		t.Fatal(err)
	}
	without := parse(t, s, deployment)
	unstructured.RemoveNestedField(without.Object, "spec", "replicas")
	if got := field(apply(t, s, without), "spec", "replicas"); got != int64(3) {
		t.Errorf("got %v replicas, want them kept", got)
	}
}

func TestAnAppliedStatusIsIgnored(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{"Deployment": deployment, "Widget": widget} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			u := parse(t, s, manifest)
			u.Object["status"] = map[string]any{"observedGeneration": int64(7)}
			made := apply(t, s, u)
			if got := field(made, "status", "observedGeneration"); got != nil {
				t.Errorf("it was created with status %v", got)
			}
			made.Object["status"] = map[string]any{"observedGeneration": int64(1)}
			made = s.Put("controller", made)
			apply(t, s, u)
			if got := field(live(s, u), "status", "observedGeneration"); got != int64(1) {
				t.Errorf("an apply changed it to %v", got)
			}
			made.Object["status"] = map[string]any{"observedGeneration": int64(9)}
			if _, err := s.Replace(t.Context(), live(s, u)); err != nil {
				t.Fatal(err)
			}
			if got := field(live(s, u), "status", "observedGeneration"); got != int64(1) {
				t.Errorf("a replacement changed it to %v", got)
			}
		})
	}
}

func TestWritesNameTheObjectThatTheyAreAbout(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		write  func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error
		want   func(error) bool
	}{
		"an apply to another object of the name": {
			reason: "it was replaced in the meantime",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				u.SetUID("another")
				_, err := s.Apply(t.Context(), u)
				return err
			},
			want: apierrors.IsConflict,
		},
		"an apply to an object that is gone": {
			reason: "it must not come back",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				u.SetUID(live(s, u).GetUID())
				u.SetName("gone")
				_, err := s.Apply(t.Context(), u)
				return err
			},
			want: apierrors.IsConflict,
		},
		"an apply without a UID": {
			reason: "it means an object that is not there yet",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				before := live(s, u)
				u.Object["data"] = map[string]any{"k": "another"}
				u.SetAnnotations(map[string]string{"operetta.dev/owner": "somebody else"})
				_, err := s.Apply(t.Context(), u)
				if after := live(s, u); before.GetResourceVersion() != after.GetResourceVersion() || before.GetUID() != after.GetUID() {
					t.Errorf("the object was written: %v, was %v", after.Object, before.Object)
				}
				return err
			},
			want: apierrors.IsAlreadyExists,
		},
		"an apply to the object": {
			reason: "it is the one",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				u.SetUID(live(s, u).GetUID())
				_, err := s.Apply(t.Context(), u)
				return err
			},
			want: succeeds,
		},
		"relinquishing fields of another object": {
			reason: "as an apply",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				u.SetUID("another")
				return s.HandOver(t.Context(), u)
			},
			want: apierrors.IsConflict,
		},
		"a replacement of another object": {
			reason: "as an apply",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				now := live(s, u)
				now.SetUID("another")
				_, err := s.Replace(t.Context(), now)
				return err
			},
			want: apierrors.IsConflict,
		},
		"a replacement of an older version": {
			reason: "somebody's change would be lost",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				before := live(s, u)
				now := before.DeepCopy()
				now.SetLabels(map[string]string{"a": "b"})
				s.Put("somebody", now)
				_, err := s.Replace(t.Context(), before)
				return err
			},
			want: apierrors.IsConflict,
		},
		"a replacement of an object that is gone": {
			reason: "it must not come back",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				before := live(s, u)
				s.Remove(before)
				_, err := s.Replace(t.Context(), before)
				return err
			},
			want: func(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) },
		},
		"a deletion of another object": {
			reason: "that one was not meant",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				err := s.Delete(t.Context(), cluster.RefOf(u), "another")
				if live(s, u) == nil {
					t.Error("it is gone")
				}
				return err
			},
			want: succeeds,
		},
		"a deletion of an object that is gone": {
			reason: "that is what was wanted",
			write: func(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) error {
				t.Helper()
				before := live(s, u)
				s.Remove(before)
				return s.Delete(t.Context(), cluster.RefOf(u), before.GetUID())
			},
			want: succeeds,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			apply(t, s, parse(t, s, configMap))
			if err := row.write(t, s, parse(t, s, configMap)); !row.want(err) {
				t.Errorf("%s: got error %v", row.reason, err)
			}
		})
	}
}

func succeeds(err error) bool { return err == nil }

func TestAReadDoesNotWaitForWhatNoCacheWillHold(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	u := parse(t, s, configMap)
	u.SetLabels(nil)
	apply(t, s, u)
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	if _, err := s.GetCached(ctx, cluster.RefOf(u)); err != nil {
		t.Error(err)
	}
}

func TestAReplacementLeavesNothingOfTheOld(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	u := apply(t, s, parse(t, s, configMap))
	set(t, u, "x", "data", "theirs")
	u = s.Put("somebody", u)
	u.Object["data"] = map[string]any{"k": "w"}
	got, err := s.Replace(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"k": "w"}, field(got, "data")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var owners []string
	for _, m := range got.GetManagedFields() {
		owners = append(owners, fmt.Sprintf("%s %s", m.Manager, m.Operation))
	}
	slices.Sort(owners)
	if diff := cmp.Diff([]string{"operetta Apply", "operetta Update"}, owners); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestADeletionWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	u := apply(t, s, parse(t, s, configMap))
	u.SetFinalizers([]string{"example.com/held"})
	s.Put("somebody", u)
	s.Events()

	remove(t, s, u)
	held := live(s, u)
	if held == nil || held.GetDeletionTimestamp() == nil {
		t.Fatalf("after the deletion: %v", held)
	}
	expectEvents(t, s, "it is marked", "update ConfigMap a")
	more := held.DeepCopy()
	more.SetFinalizers(append(more.GetFinalizers(), "example.com/more"))
	if _, err := s.Replace(t.Context(), more); !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want no finalizer added to what is going", err)
	}
	changed := parse(t, s, configMap)
	set(t, changed, "w", "data", "k")
	apply(t, s, changed)
	expectEvents(t, s, "it can still be changed", "update ConfigMap a")
	if live(s, u).GetDeletionTimestamp() == nil {
		t.Error("an apply has called the deletion off")
	}

	held = live(s, u)
	held.SetFinalizers(nil)
	s.Put("somebody", held)
	if got := live(s, u); got != nil {
		t.Errorf("without finalizers it is still there: %v", got)
	}
	expectEvents(t, s, "it goes", "delete ConfigMap a")
	if again := apply(t, s, parse(t, s, configMap)); again.GetUID() == u.GetUID() {
		t.Error("the next one of its name has its UID")
	}
}

func TestADeletionTakesDependentsFirst(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	owner := apply(t, s, parse(t, s, configMap))
	dependent := parse(t, s, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: b, finalizers: [example.com/held],
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: %s, controller: true, blockOwnerDeletion: true}]}}`, owner.GetUID()))
	s.Put("controller", dependent)
	s.Events()

	remove(t, s, owner)
	machine.Eventually(t, "the dependent to be deleted", func() bool { return live(s, dependent).GetDeletionTimestamp() != nil })
	if now := live(s, owner); now == nil || now.GetDeletionTimestamp() == nil {
		t.Errorf("the owner is not waiting: %v", now)
	}
	free := live(s, dependent)
	free.SetFinalizers(nil)
	s.Put("controller", free)
	machine.Eventually(t, "both to be gone", func() bool { return live(s, dependent) == nil && live(s, owner) == nil })
}

func TestWhatHasAnOwnerGoesWithIt(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	owner := apply(t, s, parse(t, s, configMap))
	dependent := parse(t, s, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: b,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: %s}]}}`, owner.GetUID()))
	s.Put("controller", dependent)
	s.Remove(live(s, owner))
	machine.Eventually(t, "the dependent to be gone", func() bool { return live(s, dependent) == nil })
}

func TestRefusalsAreAskedBeforeEveryWrite(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	made := apply(t, s, parse(t, s, configMap))
	s.Events()
	resource := schema.GroupResource{Resource: "configmaps"}
	s.Refuse(func(before, after *unstructured.Unstructured) error {
		switch {
		case after == nil:
			return apierrors.NewForbidden(resource, before.GetName(), errors.New("no deletion"))
		case before == nil:
			return apierrors.NewForbidden(resource, after.GetName(), errors.New("no creation"))
		default:
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), nil)
		}
	})
	changed := parse(t, s, configMap)
	set(t, changed, "w", "data", "k")
	changed.SetUID(made.GetUID())
	if _, err := s.Apply(t.Context(), changed); !apierrors.IsInvalid(err) {
		t.Errorf("an apply: %v", err)
	}
	if _, err := s.DryRun().Apply(t.Context(), changed); !apierrors.IsInvalid(err) {
		t.Errorf("a dry run of an apply: %v", err)
	}
	made.Object["data"] = map[string]any{"k": "x"}
	if _, err := s.Replace(t.Context(), made); !apierrors.IsInvalid(err) {
		t.Errorf("a replacement: %v", err)
	}
	if err := s.Delete(t.Context(), cluster.RefOf(made), made.GetUID()); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion: %v", err)
	}
	if err := s.Probe(t.Context(), changed); !apierrors.IsForbidden(err) {
		t.Errorf("a probe: %v", err)
	}
	other := parse(t, s, configMap)
	other.SetName("b")
	if _, err := s.Apply(t.Context(), other); !apierrors.IsForbidden(err) {
		t.Errorf("a creation: %v", err)
	}
	s.Refuse(nil)
	expectEvents(t, s, "nothing was written")
	if err := s.Probe(t.Context(), changed); err != nil {
		t.Errorf("a probe that nobody refuses: %v", err)
	}
	expectEvents(t, s, "a probe writes nothing")
}

func TestADryRunReturnsWhatTheServerSets(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	one, err := s.DryRun().Apply(t.Context(), parse(t, s, deployment))
	if err != nil {
		t.Fatal(err)
	}
	if created := one.GetCreationTimestamp(); one.GetUID() == "" || created.IsZero() || one.GetGeneration() != 1 {
		t.Errorf("the UID is %q, the time %s and the generation %d: a package may refer to them", one.GetUID(), one.GetCreationTimestamp(), one.GetGeneration())
	}
	another, err := s.DryRun().Apply(t.Context(), parse(t, s, configMap))
	if err != nil {
		t.Fatal(err)
	}
	if another.GetUID() == one.GetUID() {
		t.Errorf("two objects have the UID %s", one.GetUID())
	}
	if left := live(s, one); left != nil {
		t.Errorf("a dry run has created %v", left)
	}
	there := apply(t, s, parse(t, s, deployment))
	changed := parse(t, s, deployment)
	changed.SetUID(there.GetUID())
	set(t, changed, int64(7), "spec", "replicas")
	if changed, err = s.DryRun().Apply(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if changed.GetGeneration() != there.GetGeneration()+1 || changed.GetUID() != there.GetUID() {
		t.Errorf("the generation is %d, and %d before the change; the UID is %q", changed.GetGeneration(), there.GetGeneration(), changed.GetUID())
	}
}
