package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
)

// putPatch writes a patch as a person does: a merge into an object of shop.
func putPatch(t *testing.T, m *memory.Cluster, name, target, address string, merge map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": target},
		"patches": []any{map[string]any{"address": address, "strategicMerge": merge}},
	}}}
	u.SetGroupVersionKind(patch.Kind)
	u.SetNamespace(shopKey.Namespace)
	u.SetName(name)
	if _, err := m.Put("person", u); err != nil {
		t.Fatal(err)
	}
}

func patchRef(name string) cluster.Ref {
	return cluster.Ref{GroupVersionKind: patch.Kind, Namespace: shopKey.Namespace, Name: name}
}

// removePatch deletes a patch.
func removePatch(t *testing.T, m *memory.Cluster, name string) {
	t.Helper()
	u, err := m.GetLive(t.Context(), patchRef(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(t.Context(), patchRef(name), u.GetUID()); err != nil {
		t.Fatal(err)
	}
}

// expectPatch compares the reason and generation of a patch's condition.
func expectPatch(t *testing.T, m *memory.Cluster, name, reason string) {
	t.Helper()
	u, err := m.GetLive(t.Context(), patchRef(name))
	if err != nil || u == nil {
		t.Fatalf("patch %s: %v", name, err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if len(conditions) != 1 {
		t.Fatalf("patch %s has the status %v, want the reason %s", name, u.Object["status"], reason)
	}
	c, _ := conditions[0].(map[string]any)
	want := map[string]any{"status": fmt.Sprint(map[bool]string{true: "True", false: "False"}[reason == "Applied"]), "reason": reason, "observedGeneration": u.GetGeneration()}
	got := map[string]any{"status": c["status"], "reason": c["reason"], "observedGeneration": c["observedGeneration"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch %s: %v (-want +got):\n%s", name, c["message"], diff)
	}
}

// patchable is a settled resource whose cluster serves patches.
func patchable(t *testing.T) (*evaluate.Evaluator, *disturbed, *reconcile.Reconciler) {
	t.Helper()
	p, c := loadShop(t), settled(t)
	c.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
	r := newReconciler(c)
	r.Patches = c.Cluster
	return p, c, r
}

// step takes the resource so many steps, and returns what was written by them.
func step(t *testing.T, p *evaluate.Evaluator, c *disturbed, r *reconcile.Reconciler, times int) []string {
	t.Helper()
	before := len(c.Changes())
	for range times {
		if _, err := r.Reconcile(t.Context(), shopKey, p); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, change := range c.Changes()[before:] {
		out = append(out, change.String())
	}
	return out
}

var threeReplicas = map[string]any{"spec": map[string]any{"replicas": int64(3)}}

func replicas(t *testing.T, c *disturbed) int64 {
	t.Helper()
	n, _, _ := unstructured.NestedInt64(objects(t, c.Cluster, "Deployment")[0].Object, "spec", "replicas")
	return n
}

func TestAPatchIsAppliedReportedAndReverted(t *testing.T) {
	t.Parallel()
	p, c, r := patchable(t)
	putPatch(t, c.Cluster, "more", "my", "web.deployment", threeReplicas)
	putPatch(t, c.Cluster, "typo", "my", "web.deploy", threeReplicas)
	writes := step(t, p, c, r, 1)
	if diff := cmp.Diff([]string{"update Deployment default/shop", "update Shop default/my", "update Patch default/more", "update Patch default/typo"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	expectPatch(t, c.Cluster, "more", "Applied")
	expectPatch(t, c.Cluster, "typo", "NoSuchObject")
	if n := replicas(t, c); n != 3 {
		t.Errorf("there are %d replicas", n)
	}
	if diff := cmp.Diff([]any{"more"}, crStatus(t, c)["patches"]); diff != "" {
		t.Errorf("the resource's status (-want +got):\n%s", diff)
	}
	if writes := step(t, p, c, r, 3); len(writes) > 0 {
		t.Errorf("at rest there are writes: %q", writes)
	}

	removePatch(t, c.Cluster, "more")
	if writes := step(t, p, c, r, 1); len(writes) != 2 || writes[0] != "update Deployment default/shop" {
		t.Errorf("the way back takes %q, want one write and the status", writes)
	}
	if n := replicas(t, c); n != 1 {
		t.Errorf("without the patch there are %d replicas", n)
	}
	if got := crStatus(t, c)["patches"]; got != nil {
		t.Errorf("the resource still names %v", got)
	}
}

func TestAPatchOfAResourceThatIsNotThere(t *testing.T) {
	t.Parallel()
	p, c, r := patchable(t)
	act(t, c.Cluster, deleted)
	settle(t, c, p, true)
	putPatch(t, c.Cluster, "early", "my", "web.deployment", threeReplicas)
	putPatch(t, c.Cluster, "other", "another", "web.deployment", threeReplicas)
	step(t, p, c, r, 1)
	expectPatch(t, c.Cluster, "early", "TargetNotFound")
	if u, _ := c.Cluster.GetLive(t.Context(), patchRef("other")); u.Object["status"] != nil {
		t.Errorf("a patch of another resource was told %v", u.Object["status"])
	}
	act(t, c.Cluster, map[string]any{})
	step(t, p, c, r, 1)
	if n := replicas(t, c); n != 3 {
		t.Errorf("once the resource is there, it has %d replicas", n)
	}
}

func TestANewPatchOfAResourceThatIsNotRolledOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    string
		stop   func(*testing.T, *disturbed)
		reason string
	}{
		"paused": {
			"a person has said that nothing is to be changed",
			func(t *testing.T, c *disturbed) {
				t.Helper()
				annotate(t, c.Cluster, reconcile.AnnotationPaused, "true")
			}, "TargetPaused",
		},
		"invalid": {
			"nothing is rendered for a spec that is wrong",
			func(t *testing.T, c *disturbed) {
				t.Helper()
				act(t, c.Cluster, map[string]any{"size": "many"})
			}, "NotRendered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c, r := patchable(t)
			putPatch(t, c.Cluster, "old", "my", "web.deployment", threeReplicas)
			step(t, p, c, r, 1)
			tc.stop(t, c)
			putPatch(t, c.Cluster, "new", "my", "web.service", map[string]any{"spec": map[string]any{"type": "NodePort"}})
			writes := step(t, p, c, r, 2)
			expectPatch(t, c.Cluster, "new", tc.reason)
			expectPatch(t, c.Cluster, "old", "Applied")
			if n := strings.Count(strings.Join(writes, "\n"), "Patch"); n != 1 {
				t.Errorf("%s: writes are %q", tc.why, writes)
			}
			if diff := cmp.Diff([]any{"old"}, crStatus(t, c)["patches"]); diff != "" {
				t.Errorf("%s: the resource forgets what is in effect (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// unreadable keeps patches that cannot be read.
type unreadable struct{ cluster.Cluster }

// List implements cluster.Cluster.
func (unreadable) ListCached(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return nil, &cluster.KindUnreadableError{Kind: patch.Kind, Cause: errors.New("it is forbidden")}
}

func TestPatchesThatCannotBeReadAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed)
	b.rest()
	act(t, b.memory, map[string]any{"size": int64(2)})
	b.reconciler.Patches = unreadable{}
	if _, err := b.step(); err == nil {
		t.Error("it is not tried again")
	}
	b.expect("whoever waits is told why", "False KindUnreadable", "operetta.dev/v1alpha1 Patch cannot be read: it is forbidden")
	if got := b.data("web", "size"); got != "1" {
		t.Errorf("size is %s: without its patches a resource would lose their changes", got)
	}
	b.reconciler.Patches = nil
	b.rest()
	b.expect("they can be read", "True Ready")
	if got := b.data("web", "size"); got != "2" {
		t.Errorf("size is %s", got)
	}
}

// The operator goes on without Patches that it may not read, so whoever relies on one has to see that.
func TestAResourceSaysThatItsPatchesAreUnread(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed)
	why := ""
	b.reconciler.PatchesUnread = func(namespace string) string {
		if namespace == "" {
			t.Error("it is asked about no namespace")
		}
		return why
	}
	const refused = `the operator may not read them: cannot list resource "patches"`
	for _, row := range []struct{ reason, why, want, message string }{
		{"they are read", "", "", ""},
		{"the permission is missing", refused, "True Forbidden", "Patches of this resource do not count: " + refused},
		{"it is back", "", "", ""},
	} {
		why = row.why
		b.rest()
		b.expect("Patches that do not count hold nothing up", "True Ready")
		if got, message := b.condition("PatchesUnread"); got != row.want || message != row.message {
			t.Errorf("%s: it is %q, and says %q", row.reason, got, message)
		}
	}
}

func TestAPatchThatNobodyLooksAtIsToldUnlessSomebodyHas(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		why string
		// before is the reason that it has, and of another generation of it.
		before patch.Reason
		stale  bool
		want   string
	}{
		"new":                          {"nobody has said anything", "", false, "NoSuchKind"},
		"known":                        {"it is said again, and differently", patch.TargetClusterScoped, false, "NoSuchKind"},
		"applied elsewhere":            {"another process serves the kind", patch.Applied, false, "Applied"},
		"applied before it was edited": {"what was said is about another target", patch.Applied, true, "NoSuchKind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := memory.New()
			m.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
			putPatch(t, m, "fix", "my", "web.deployment", threeReplicas)
			u, _ := m.GetLive(t.Context(), patchRef("fix"))
			if row.before != "" {
				r := patch.NotApplied(patch.Parse(u), row.before, "")
				if row.before == patch.Applied {
					r.Unmatched = nil
				}
				if row.stale {
					r.Patch.Generation--
				}
				u.Object["status"] = patch.Status(nil, r, time.Unix(1, 0))
				if err := m.ApplyStatus(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}
			writes := len(m.Changes())
			for range 2 {
				u, _ = m.GetLive(t.Context(), patchRef("fix"))
				if err := reconcile.ReportOrphanPatch(t.Context(), m, u, patch.NoSuchKind, "no such kind", time.Unix(2, 0)); err != nil {
					t.Fatal(err)
				}
			}
			expectPatch(t, m, "fix", row.want)
			if n := len(m.Changes()) - writes; n > 1 {
				t.Errorf("%s: it was told %d times", row.why, n)
			}
		})
	}
}

// A parsing counts how often a Patch with it is encoded, which parsing it begins with.
type parsing struct{ times *atomic.Int32 }

// MarshalJSON implements json.Marshaler.
func (p parsing) MarshalJSON() ([]byte, error) {
	p.times.Add(1)
	return []byte("0"), nil
}

// listing is a cluster that has nothing but Patches.
type listing struct {
	cluster.Cluster
	all []*unstructured.Unstructured
}

// ListCached implements cluster.Cluster.
func (l listing) ListCached(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return l.all, nil
}

// ApplyStatus implements cluster.Cluster.
func (listing) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }

func TestOnlyPatchesOfTheResourceAreParsed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		target  map[string]any
		parsing bool
	}{
		"another name": {"whoever may write Patches would slow down every resource of the namespace", map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": "another"}, false},
		"another kind": {"it is none of this package", map[string]any{"apiVersion": "example.com/v1", "kind": "Store", "name": shopKey.Name}, false},
		"no target":    {"it is of nobody", nil, false},
		"its own":      {"it is applied, in whatever version it is written", map[string]any{"apiVersion": "example.com/v9", "kind": "Shop", "name": shopKey.Name}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var times atomic.Int32
			var all []*unstructured.Unstructured
			for i := range 1000 {
				u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"target": row.target, "order": parsing{&times}}}}
				u.SetName(fmt.Sprintf("p%d", i))
				all = append(all, u)
			}
			p, _, r := patchable(t)
			r.Patches = listing{all: all}
			if _, err := r.Reconcile(t.Context(), shopKey, p); err != nil {
				t.Fatal(err)
			}
			if got := times.Load() > 0; got != row.parsing {
				t.Errorf("%s: %d were parsed", row.reason, times.Load())
			}
		})
	}
}
