package ownership_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// marked returns a function that makes objects of the owner with marks.
func marked(t *testing.T) func(name, component string) *unstructured.Unstructured {
	t.Helper()
	stamped := stamp(t, rendered(program.Policy{})).Manifest
	stamped.SetNamespace(owner.Namespace)
	return func(name, component string) *unstructured.Unstructured {
		u := stamped.DeepCopy()
		u.SetName(name)
		annotations := u.GetAnnotations()
		annotations[ownership.ComponentAnnotation] = component + "/o"
		u.SetAnnotations(annotations)
		return u
	}
}

func TestAnInventoryThatIsRebuiltHasSoManyComponentsAtMost(t *testing.T) {
	t.Parallel()
	mark := marked(t)
	var objects []*unstructured.Unstructured
	for i := range 2001 {
		objects = append(objects, mark(fmt.Sprintf("n%d", i), fmt.Sprintf("c%d", i)))
	}
	inv, skipped := ownership.Rebuild(owner, append(objects, mark("more", "c0")))
	if inv.Len() != 2001 || len(skipped) != 1 || skipped[0].Ref.Name != "n2000" || !strings.Contains(skipped[0].Why, "too many") {
		t.Errorf("there are %d objects, and without %v", inv.Len(), skipped)
	}
	if _, err := ownership.Decode(inv.Encode()); err != nil {
		t.Error(err)
	}
}

// A kind that is served in two versions may be listed in both, and anybody may mark an object anew in
// between: an inventory has it once, in the component that it was found in first.
func TestAnInventoryThatIsRebuiltHasEachObjectOnce(t *testing.T) {
	t.Parallel()
	mark := marked(t)
	later := mark("one", "a")
	later.SetAPIVersion("v2")
	inv, skipped := ownership.Rebuild(owner, []*unstructured.Unstructured{mark("one", "a"), mark("two", "b"), mark("one", "b"), later})
	var got []string
	for _, g := range inv {
		for _, e := range g.Objects {
			got = append(got, g.Component+" "+e.APIVersion+" "+e.Name)
		}
	}
	if diff := cmp.Diff([]string{"a v1 one", "b v1 two"}, got); diff != "" || len(skipped) > 0 {
		t.Errorf("%v were skipped; (-want +got):\n%s", skipped, diff)
	}
}

// Every object of a component has the edges of the component: they count once, and the last ones count.
func TestAnInventoryThatIsRebuiltHasSoManyEdgesAtMost(t *testing.T) {
	t.Parallel()
	mark := marked(t)
	after := func(name, component string, edges int) *unstructured.Unstructured {
		u := mark(name, component)
		annotations := u.GetAnnotations()
		annotations[ownership.AfterAnnotation] = strings.TrimSuffix(strings.Repeat("x,", edges), ",")
		u.SetAnnotations(annotations)
		return u
	}
	inv, skipped := ownership.Rebuild(owner, []*unstructured.Unstructured{
		after("one", "a", 15_000), after("two", "a", 15_000), after("refused", "b", 5_001), after("three", "a", 1), after("four", "b", 19_999),
	})
	got := map[string]int{}
	for _, g := range inv {
		got[g.Component+" objects"], got[g.Component+" edges"] = len(g.Objects), len(g.DependsOn)
	}
	if diff := cmp.Diff(map[string]int{"a objects": 3, "a edges": 1, "b objects": 1, "b edges": 19_999}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(skipped) != 1 || skipped[0].Ref.Name != "refused" || !strings.Contains(skipped[0].Why, "too many") {
		t.Errorf("what was skipped is %v", skipped)
	}
}

// Anybody may create as many marked objects in a namespace of their own as an inventory may have, so
// each one must cost the same. It counts the memory of the whole process, so it is not parallel.
func TestTheCostOfAnObjectOfAnInventoryThatIsRebuiltDoesNotGrow(t *testing.T) {
	mark := marked(t)
	for name, component := range map[string]func(i int) string{
		"one component":   func(int) string { return "c" },
		"many components": func(i int) string { return fmt.Sprintf("c%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			perObject := func(n int) uint64 {
				var objects []*unstructured.Unstructured
				for i := range n {
					objects = append(objects, mark(fmt.Sprintf("n%d", i), component(i)))
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				inv, _ := ownership.Rebuild(owner, objects)
				runtime.ReadMemStats(&after)
				if inv.Len() != n {
					t.Fatalf("the inventory has %d objects, want %d", inv.Len(), n)
				}
				return (after.TotalAlloc - before.TotalAlloc) / uint64(n)
			}
			if few, many := perObject(200), perObject(2000); many > 2*few {
				t.Errorf("one of 2000 objects takes %d bytes, and one of 200 %d", many, few)
			}
		})
	}
}

func TestWhatHasBeenSeenIsNotedInACopy(t *testing.T) {
	t.Parallel()
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "one"}})
	u := marked(t)("one", "a")
	u.SetUID("7")
	seen := inv.WithUIDs(owner.Namespace, u)
	if got := []string{inv[0].Objects[0].UIDPrefix, seen[0].Objects[0].UIDPrefix}; !cmp.Equal(got, []string{"", "7"}) {
		t.Errorf("the UIDs before and after are %q", got)
	}
}

// A name as long as the API server allows is right, and one more character is not.
func TestNamesOfAnInventoryHaveALimit(t *testing.T) {
	t.Parallel()
	for length, right := range map[int]bool{253: true, 254: false} {
		inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("x", length)}})
		if _, err := ownership.Decode(inv.Encode()); (err == nil) != right {
			t.Errorf("a name with %d characters: %v", length, err)
		}
	}
}

func TestConditionsOfAFinishedObjectAreKept(t *testing.T) {
	t.Parallel()
	entry := ownership.Entry{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "one", Digest: "d", Content: "c"}
	job := fromYAML(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: one, namespace: default, annotations: {`+ownership.AppliedAnnotation+`: d}},
status: {succeeded: 1, message: long, conditions: [{type: Complete, status: "True", message: "what a container has printed"}, {type: Odd, status: "False", reason: 5}]}}`)
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{entry}).WithFinished("default", job, ownership.Succeeded)
	got := inv[0].Objects[0].FinishedObject("default")
	want := map[string]any{"succeeded": int64(1), "conditions": []any{map[string]any{"type": "Complete", "status": "True"}, map[string]any{"type": "Odd", "status": "False"}}}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The digest says what was applied, so an object that is in sync needs no write after a lost status. Anybody may
// have written another one.
func TestAnInventoryThatIsRebuiltHasTheDigestsThatAreInTheMarks(t *testing.T) {
	t.Parallel()
	mark := marked(t)
	for name, row := range map[string]struct{ reason, digest, want string }{
		"one of the engine": {"it was applied", "sha256:0123", "sha256:0123"},
		"one that is long":  {"it has no place in a status", strings.Repeat("0", 10_000), ""},
		"none":              {"it was removed", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := mark("one", "a")
			annotations := u.GetAnnotations()
			annotations[ownership.AppliedAnnotation] = row.digest
			u.SetAnnotations(annotations)
			inv, skipped := ownership.Rebuild(owner, []*unstructured.Unstructured{u})
			if len(skipped) > 0 || inv[0].Objects[0].Digest != row.want {
				t.Errorf("%s: the inventory is %v, without %v", row.reason, inv, skipped)
			}
		})
	}
}

// Whoever may write a status can write UIDs into its inventory, and the marks of an object by its name alone are
// those that anybody can write.
func TestAnInventoryThatIsRebuiltBelievesNoInventory(t *testing.T) {
	t.Parallel()
	u := marked(t)("one", "a")
	u.SetUID("01234567-89ab")
	u.SetOwnerReferences(nil)
	annotations := u.GetAnnotations()
	delete(annotations, "operetta.dev/owner-uid")
	u.SetAnnotations(annotations)
	forged := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "one", UIDPrefix: "01234567"}}}}
	if got, _ := ownership.Classify(u, owner.WithInventory(forged)); got != ownership.Owned {
		t.Fatalf("with the inventory it is %s: this test shows nothing", got)
	}
	if inv, _ := ownership.Rebuild(owner.WithInventory(forged), []*unstructured.Unstructured{u}); inv.Len() != 0 {
		t.Errorf("it has %v by the word of an inventory", inv)
	}
}
