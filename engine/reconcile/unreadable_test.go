package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
)

// edit changes the status of the resource as a person does.
func (b *bench) edit(change func(s map[string]any)) {
	b.t.Helper()
	cr := b.find("Shop", shopKey.Name)
	s, _, _ := unstructured.NestedMap(cr.Object, "status")
	change(s)
	cr.Object["status"] = s
	b.put(cr.Object)
}

// nonsense are ways to make a status unreadable, with what has to be said of them.
var nonsense = map[string]struct {
	field, path string
	change      func(s map[string]any)
}{
	"the inventory is a text": {"inventory", "status.inventory is not a list", func(s map[string]any) { s["inventory"] = "nothing" }},
	"a kind is empty": {"inventory", "status.inventory[0].objects[0].kind is missing", func(s map[string]any) {
		s["inventory"].([]any)[0].(map[string]any)["objects"].([]any)[0].(map[string]any)["kind"] = ""
	}},
	"a later version wrote it": {"inventory", "status.inventory[0].guard is a field of a later version", func(s map[string]any) {
		s["inventory"].([]any)[0].(map[string]any)["guard"] = "x"
	}},
	"the hooks are a text": {"hooks", "status.hooks is not a list", func(s map[string]any) { s["hooks"] = "none" }},
	"a hook is none":       {"hooks", "status.hooks[0] is not an object", func(s map[string]any) { s["hooks"] = []any{int64(5)} }},
	"too many hooks": {"hooks", "status.hooks has more than 2000 hooks", func(s map[string]any) {
		s["hooks"] = slices.Repeat([]any{map[string]any{"name": "a", "state": "Verified"}}, 2001)
	}},
	"a hook without a name": {"hooks", "status.hooks[0].name is missing", func(s map[string]any) { s["hooks"] = hookOf("", "", "Verified") }},
	"a long name":           {"hooks", "status.hooks[0].name is longer than 253 characters", func(s map[string]any) { s["hooks"] = hookOf(strings.Repeat("x", 254), "", "Verified") }},
	"a long digest":         {"hooks", "status.hooks[0].digest is longer than 128 characters", func(s map[string]any) { s["hooks"] = hookOf("x", strings.Repeat("x", 129), "Verified") }},
	"a state of later":      {"hooks", `status.hooks[0].state is of a later version`, func(s map[string]any) { s["hooks"] = hookOf("x", "", "Paused") }},
}

// hookOf returns one hook as a status has it.
func hookOf(name, digest, state string) []any {
	return []any{map[string]any{"name": name, "digest": digest, "state": state}}
}

func TestAStatusThatCannotBeReadStopsEverythingAndIsKept(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range nonsense {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ordered)
			b.rest()
			names := b.names()
			b.edit(row.change)
			garbage := b.status()[row.field]
			act(t, b.memory, map[string]any{"name": "store"})
			n := len(b.memory.Changes())
			again := b.rest()
			b.expect("it says where, and what to do", "False StatusUnreadable", row.path, "nothing is written or deleted", "remove status."+row.field)
			if got, _ := b.condition(status.ConditionStalled); got != "True StatusUnreadable" || b.status()["phase"] != string(status.PhaseFailed) {
				t.Errorf("Stalled is %s, the phase %v, although a person has to act", got, b.status()["phase"])
			}
			if again == 0 {
				t.Error("nothing makes it look again once it was corrected by hand")
			}
			if diff := cmp.Diff(garbage, b.status()[row.field]); diff != "" {
				t.Errorf("what a person might still need is overwritten (-was +is):\n%s", diff)
			}
			for _, c := range b.memory.Changes()[n:] {
				if c.Ref.Kind != shopKind.Kind {
					t.Errorf("the children are left alone: %s", c)
				}
			}
			if !slices.ContainsFunc(b.events, func(e rollout.Event) bool { return e.Reason == "Failed" && strings.Contains(e.Message, row.path) }) {
				t.Errorf("no event says so: %v", b.events)
			}

			act(t, b.memory, deleted)
			b.rest()
			if diff := cmp.Diff(names, b.names(), unordered); diff != "" || b.find("Shop", shopKey.Name) == nil {
				t.Fatalf("the deletion does not wait (-was +is):\n%s", diff)
			}
			b.expect("the deletion says what it waits for", "False StatusUnreadable", row.path)
			if got, _ := b.condition(status.ConditionStalled); got != "True StatusUnreadable" || b.status()["phase"] != string(status.PhaseDeleting) {
				t.Errorf("Stalled is %s, the phase %v while the deletion is held", got, b.status()["phase"])
			}

			if n := b.heard("DeletionHeld"); n != 1 {
				t.Errorf("%d events say that the deletion is held", n)
			}
			b.edit(func(s map[string]any) { delete(s, row.field) })
			b.rest()
			if got := strings.Join(b.names(), " "); got != "shop-kept" {
				t.Errorf("left behind after the remedy: %s", got)
			}
		})
	}
}

func TestAResourceWithoutItsPackageWithAnUnreadableInventoryIsHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.edit(func(s map[string]any) { s["inventory"] = "nothing" })
	names := b.names()
	b.deleteWithoutPackage(old)
	if again := b.restWithoutPackage(); again == 0 {
		t.Error("nothing makes it look again")
	}
	b.expect("the package is not needed to say so", "False StatusUnreadable", "status.inventory is not a list")
	if diff := cmp.Diff(names, b.names(), unordered); diff != "" {
		t.Errorf("the deletion does not wait (-was +is):\n%s", diff)
	}
	b.edit(func(s map[string]any) { delete(s, "inventory") })
	b.restWithoutPackage()
	if got := strings.Join(b.names(), " "); got != "shop-kept" {
		t.Errorf("left behind after the remedy: %s", got)
	}
}

func TestAnInventoryThatWasRemovedIsRebuilt(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.edit(func(s map[string]any) { s["inventory"].([]any)[0].(map[string]any)["component"] = "" })
	b.rest()
	b.expect("it is unreadable", "False StatusUnreadable", "status.inventory[0].component")
	b.edit(func(s map[string]any) { delete(s, "inventory") })
	act(t, b.memory, map[string]any{"name": "store"})
	b.rest()
	b.expect("the remedy helps", "True Ready")
	if diff := cmp.Diff([]string{"store-base", "store-top", "store-role", "store-far", "store-kept", "shop-kept"}, b.names(), unordered); diff != "" {
		t.Errorf("A3: the old objects are forgotten (-want +got):\n%s", diff)
	}
}

func TestAResourceWithoutObjectsHasAnEmptyInventory(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: none: {}`)
	b.rest()
	if got, ok := b.status()["inventory"].([]any); !ok || got == nil || len(got) != 0 {
		t.Errorf("got %#v: a missing one would be looked for with each step", b.status()["inventory"])
	}
}

func TestAPausedResourceWithAnUnreadableStatusIsJustPaused(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	b.edit(func(s map[string]any) { s["inventory"] = "nothing" })
	annotate(t, b.memory, reconcile.AnnotationPaused, "true")
	b.rest()
	if got, _ := b.condition(status.ConditionPaused); got != "True Paused" || b.status()["inventory"] != "nothing" {
		t.Errorf("Paused is %s, the inventory %v", got, b.status()["inventory"])
	}
}
