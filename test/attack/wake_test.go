package attack

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// forgedMark returns a ConfigMap that says it is a resource's.
func forgedMark(namespace, name, owner string) *unstructured.Unstructured {
	u := harness.Object("v1", "ConfigMap", namespace, name)
	u.SetLabels(map[string]string{"operetta.dev/owner": "forged"})
	u.SetAnnotations(map[string]string{"operetta.dev/owner": owner, "operetta.dev/component": "greeting/map"})
	return u
}

// TestAttackForgedMarksWakeNobody is attack 5a: 3,471 writes of a ConfigMap in another
// namespace, and of ConfigMaps of other names in the same, had cost 2,708 reconciles.
func TestAttackForgedMarksWakeNobody(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	p := harness.NewSmall(t, "woken", hello)
	s.Operate(p.Dir, harness.Everywhere, harness.Alone)
	far := s.Elsewhere()
	bob := s.Tenant("bob", s.Namespace, things(p))
	w1 := bob.Create(p.Thing(s, "w1", nil))
	s.ExpectAllReady(w1)
	s.Settle()
	owner := fmt.Sprintf("Thing.%s.example.com %s/w1", p.Name, s.Namespace)
	for name, row := range map[string]struct {
		namespace string
		// fresh is whether each write is of another name.
		fresh bool
		// uid is of whom the marks say that they are.
		uid  string
		most int
	}{
		"from another namespace":                 {far, false, "", 0},
		"of many names":                          {far, true, "", 0},
		"beside it":                              {s.Namespace, false, "", 40},
		"of many names, and beside it":           {s.Namespace, true, "", 140},
		"beside it, of a resource that was once": {s.Namespace, false, "9c7b1d5e-0000-4000-8000-000000000000", 0},
	} {
		// One after the other: they count the same reconciles.
		carol := s.Tenant("carol-"+fmt.Sprint(row.most, row.fresh, len(row.uid)), row.namespace, configMaps())
		before := s.Operator.Reconciles(p.Controller())
		const writes = 500
		forged := forgedMark(row.namespace, fmt.Sprintf("f-%d-%t-%d", row.most, row.fresh, len(row.uid)), owner)
		if row.uid != "" {
			forged.SetAnnotations(map[string]string{"operetta.dev/owner": owner, "operetta.dev/owner-uid": row.uid})
		}
		u := carol.Create(forged)
		for i := range writes {
			if row.fresh {
				carol.Create(forgedMark(row.namespace, fmt.Sprintf("f-%d-%d", row.most, i), owner))
			} else if err := carol.Patch(u, map[string]any{"data": map[string]any{"n": fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		// A change of bob's own is acted upon at once all the same.
		text := fmt.Sprintf("after %d %t %d", row.most, row.fresh, len(row.uid))
		if err := bob.Patch(w1, harness.Spec(map[string]any{"text": text})); err != nil {
			t.Fatal(err)
		}
		s.ExpectData("w1", "text", text)
		s.ExpectAllReady(w1)
		cost := s.Operator.Reconciles(p.Controller()) - before
		t.Logf("%s: %d writes cost %d reconciles", name, writes, cost)
		if cost > row.most+4 {
			t.Errorf("%s: %d writes cost %d reconciles, want %d and those of one change at most", name, writes, cost, row.most)
		}
	}
}

// TestAttackPatchesForNobodyCostFewReconciles plays a tenant who writes a Patch again and
// again that is about the kind of no package, so that no resource has a pace for it.
func TestAttackPatchesForNobodyCostFewReconciles(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	p := harness.NewSmall(t, "fornobody", hello)
	s.Operate(p.Dir)
	mallory := s.Tenant("mallory", s.Namespace, patches())
	u := s.NewPatch("p", "shop", 0, harness.Merges("web.map", map[string]any{"data": map[string]any{"a": "b"}}))
	about := func(kind string) map[string]any {
		return harness.Spec(map[string]any{"target": map[string]any{"apiVersion": "example.com/v1", "kind": kind, "name": "shop"}})
	}
	u = mallory.Create(u)
	const controller, writes = "unmatched.operetta.dev", 300
	before := s.Operator.Reconciles(controller)
	for i := range writes {
		if err := mallory.Patch(u, about(fmt.Sprint("Kind", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := mallory.Patch(u, about("Last")); err != nil {
		t.Fatal(err)
	}
	s.ExpectPatch("p", "NoSuchKind", "Last.example.com")
	cost := s.Operator.Reconciles(controller) - before
	t.Logf("%d writes cost %d reconciles", writes, cost)
	if cost > 40 {
		t.Errorf("%d writes cost %d reconciles", writes, cost)
	}
}
