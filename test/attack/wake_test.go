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
		most  int
	}{
		"from another namespace":       {far, false, 0},
		"of many names":                {far, true, 0},
		"beside it":                    {s.Namespace, false, 40},
		"of many names, and beside it": {s.Namespace, true, 140},
	} {
		// One after the other: they count the same reconciles.
		carol := s.Tenant("carol-"+fmt.Sprint(row.most, row.fresh), row.namespace, configMaps())
		before := s.Operator.Reconciles(p.Controller())
		const writes = 500
		u := carol.Create(forgedMark(row.namespace, fmt.Sprintf("f-%d-%t", row.most, row.fresh), owner))
		for i := range writes {
			if row.fresh {
				carol.Create(forgedMark(row.namespace, fmt.Sprintf("f-%d-%d", row.most, i), owner))
			} else if err := carol.Patch(u, map[string]any{"data": map[string]any{"n": fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		// A change of bob's own is acted upon at once all the same.
		text := fmt.Sprintf("after %d %t", row.most, row.fresh)
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
