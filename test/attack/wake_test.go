package attack

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// objectWithForgedOwner returns a ConfigMap with the owner labels of a resource.
func objectWithForgedOwner(namespace, name, owner string) *unstructured.Unstructured {
	u := harness.Object("v1", "ConfigMap", namespace, name)
	u.SetLabels(map[string]string{"operetta.dev/owner": "forged"})
	u.SetAnnotations(map[string]string{"operetta.dev/owner": owner, "operetta.dev/component": "greeting/map"})
	return u
}

// TestAttackForgedMarksWakeNobody is attack 5a: 3,471 writes of a ConfigMap in another namespace, and
// of ConfigMaps with other names in the same one, once caused 2,708 reconciles.
func TestAttackForgedMarksWakeNobody(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "woken", helloBody)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	bob := s.Tenant("bob", s.Namespace, things(p))
	w1 := bob.Create(p.Thing(s, "w1", nil))
	s.ExpectResourceReady(w1)
	s.WaitUntilIdle()
	owner := fmt.Sprintf("Thing.%s.example.com %s/w1", p.Name, s.Namespace)
	for name, row := range map[string]struct {
		namespace string
		// fresh is whether each write is to another name.
		fresh bool
		// uid is the UID of the owner that the object claims.
		uid string
		// The rate limit allows burst reconciles at once, and then so many a second.
		burst, perSecond int
	}{
		"from another namespace":                 {far, false, "", 0, 0},
		"of many names":                          {far, true, "", 0, 0},
		"beside it":                              {s.Namespace, false, "", 10, 1},
		"of many names, and beside it":           {s.Namespace, true, "", 50, 5},
		"beside it, of a resource that was once": {s.Namespace, false, "9c7b1d5e-0000-4000-8000-000000000000", 0, 0},
	} {
		// The cases run one after the other, because they count the same reconciles.
		carol := s.Tenant("carol-"+fmt.Sprint(row.burst, row.fresh, len(row.uid)), row.namespace, configMaps())
		before, began := s.Operator.Reconciles(p.Controller()), time.Now()
		writes := 150
		if harness.Long() {
			writes = 500
		}
		forged := objectWithForgedOwner(row.namespace, fmt.Sprintf("f-%d-%t-%d", row.burst, row.fresh, len(row.uid)), owner)
		if row.uid != "" {
			forged.SetAnnotations(map[string]string{"operetta.dev/owner": owner, "operetta.dev/owner-uid": row.uid})
		}
		u := carol.Create(forged)
		for i := range writes {
			if row.fresh {
				carol.Create(objectWithForgedOwner(row.namespace, fmt.Sprintf("f-%d-%d", row.burst, i), owner))
			} else if err := carol.Patch(u, map[string]any{"data": map[string]any{"n": fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		// A change by bob still has an effect at once.
		text := fmt.Sprintf("after %d %t %d", row.burst, row.fresh, len(row.uid))
		if err := bob.Patch(w1, harness.Spec(map[string]any{"text": text})); err != nil {
			t.Fatal(err)
		}
		s.ExpectData("w1", "text", text)
		s.ExpectResourceReady(w1)
		cost := s.Operator.Reconciles(p.Controller()) - before
		most := row.burst + row.perSecond*int(time.Since(began).Seconds()+1)
		t.Logf("%s: %d writes in %s cost %d reconciles", name, writes, harness.Elapsed(began), cost)
		if cost > most+4 {
			t.Errorf("%s: %d writes cost %d reconciles, want %d and those of one change at most", name, writes, cost, most)
		}
	}
}

// In TestAttackPatchesForNobodyCostFewReconciles a tenant writes a Patch again and again for a kind of
// no package, which is not rate limited by any resource.
func TestAttackPatchesForNobodyCostFewReconciles(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "fornobody", helloBody)
	s.StartOperator(p.Dir)
	mallory := s.Tenant("mallory", s.Namespace, patches())
	u := s.NewPatch("p", "shop", 0, harness.StrategicMerge("web.map", map[string]any{"data": map[string]any{"a": "b"}}))
	about := func(kind string) map[string]any {
		return harness.Spec(map[string]any{"target": map[string]any{"apiVersion": "example.com/v1", "kind": kind, "name": "shop"}})
	}
	u = mallory.Create(u)
	const controller, writes = "unmatched.operetta.dev", 300
	before, began := s.Operator.Reconciles(controller), time.Now()
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
	t.Logf("%d writes in %s cost %d reconciles", writes, harness.Elapsed(began), cost)
	// The rate limit of one object: ten at once, and then one a second.
	if most := 10 + int(time.Since(began).Seconds()+1); cost > most+4 {
		t.Errorf("%d writes cost %d reconciles, want %d and those of one change at most", writes, cost, most)
	}
}
