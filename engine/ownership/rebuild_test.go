package ownership_test

import (
	"fmt"
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
		annotations[ownership.ComponentMark] = component + "/o"
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

func TestWhatHasBeenSeenIsNotedInACopy(t *testing.T) {
	t.Parallel()
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "one"}})
	u := marked(t)("one", "a")
	u.SetUID("7")
	seen := inv.Seen(owner.Namespace, u)
	if got := []string{inv[0].Objects[0].UID, seen[0].Objects[0].UID}; !cmp.Equal(got, []string{"", "7"}) {
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

func TestOneConditionOfAFinishedObjectIsKept(t *testing.T) {
	t.Parallel()
	entry := ownership.Entry{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "one", Digest: "d", Content: "c"}
	job := fromYAML(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: one, namespace: default, annotations: {`+ownership.AppliedMark+`: d}},
status: {succeeded: 1, message: long, conditions: [{type: Complete, status: "True", message: "what a container has printed"}]}}`)
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{entry}).WithFinished("default", job, ownership.Succeeded)
	got := inv[0].Objects[0].Remembered("default")
	want := map[string]any{"succeeded": int64(1), "conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
