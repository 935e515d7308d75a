package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// bridged is a component over another one, with a third between them.
func bridged(gate string) string {
	return `
components: db: objects: o: ` + configMap("db", "") + `
components: gate: {dependsOn: db: {}, ` + gate + `}
components: web: {dependsOn: gate: optional: true, objects: o: ` + configMap("web", "") + `}
`
}

const unservedProbe = `objects: o: {apiVersion: "monitoring.example.com/v1", kind: "Probe", metadata: name: "p"}`

func TestDeletionGoesBackwardsThroughWhatHasNoObjects(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		gate   string
		// act happens between the rollout and the deletion.
		act func(w *world)
	}{
		"a component that only requires something": {
			reason: "objects are optional",
			gate:   `requires: on: cr.spec.on`,
		},
		"a component that is switched off": {
			reason: "it never had an object",
			gate:   `when: false, objects: o: ` + configMap("gate", ""),
		},
		"a component that was switched off later": {
			reason: "its objects are gone, and what they stood for is not",
			gate:   `when: cr.spec.on, objects: o: ` + configMap("gate", ""),
			act: func(w *world) {
				w.spec["on"] = false
				w.mustRun()
				w.mustRun()
			},
		},
		"a component of a kind that is not served": {
			reason: "it is skipped",
			gate:   `unserved: "skip", ` + unservedProbe,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bridged(row.gate))
			w.mustRun()
			if row.act != nil {
				row.act(w)
			}
			held(w, "web")
			stored := w.protects
			if w.mustRun(); w.protects != stored {
				t.Error("the inventory is stored again although nothing is new")
			}
			result := w.mustTeardown()
			if w.object("ConfigMap", "db") == nil {
				t.Errorf("%s: the db is gone, and the web is still there; inventory %v", row.reason, w.inventory)
			}
			if got := message(result, "db"); !strings.Contains(got, "waits for the deletion of web") && !strings.Contains(got, "waits for the deletion of gate") {
				t.Errorf("%s: db says %q, want what it waits for", row.reason, got)
			}
			w.change("ConfigMap", "web", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			if left := w.mustTeardown().Inventory; left.Len() != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// held keeps a ConfigMap from going.
func held(w *world, name string) {
	w.t.Helper()
	w.change("ConfigMap", name, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/held"}) })
}

func TestObjectsSayInWhichOrderTheyGoAlsoThroughWhatHasNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged(`requires: on: cr.spec.on`))
	w.mustRun()
	rebuilt, _ := ownership.Rebuild(w.owner, []*unstructured.Unstructured{w.object("ConfigMap", "db"), w.object("ConfigMap", "web")})
	if diff := cmp.Diff([]string{"db"}, rebuilt[1].DependsOn); rebuilt[1].Component != "web" || diff != "" {
		t.Errorf("an inventory that is rebuilt from the objects has lost the order: %v", rebuilt)
	}
}

// TestTheOrderIsKeptWhenAComponentLeavesThePackage has a component between two that
// the next version of the package does not have.
func TestTheOrderIsKeptWhenAComponentLeavesThePackage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged(`objects: o: `+configMap("gate", "")))
	w.mustRun()
	held(w, "web")
	w.load(`components: other: objects: o: ` + configMap("other", ""))
	if waits := w.mustRun().Completion; waits.Pruning == "" || waits.Refused {
		t.Errorf("it waits for %q, refused %v: nobody has refused a deletion", waits.Pruning, waits.Refused)
	}
	if w.object("ConfigMap", "gate") == nil || w.object("ConfigMap", "db") == nil {
		t.Error("G1: what the web depended on goes after it, also when all of them left the package")
	}
	w.change("ConfigMap", "web", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	w.mustRun()
	if diff := cmp.Diff([]string{"delete ConfigMap gate", "delete ConfigMap db"}, w.wrote()); diff != "" {
		t.Errorf("G1: order of deletion (-want +got):\n%s", diff)
	}
}

func TestDeletionEndsAlsoWhenTheInventoryGoesInACircle(t *testing.T) {
	t.Parallel()
	const first = `
components: a: objects: o: ` + `{apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}` + `
components: b: objects: o: ` + `{apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}` + `
components: c: {dependsOn: a: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}}
`
	turned := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, first+"components: a: dependsOn: b: {}\n")
		w.mustRun()
		// The next version turns the edge around, and a is not applied with it.
		w.load(first + "components: b: dependsOn: a: until: \"applied\"\ncomponents: a: requires: never: cr.spec.size > 5\n")
		w.mustRun()
		w.wrote()
		return w
	}
	t.Run("when it is torn down", func(t *testing.T) {
		t.Parallel()
		w := turned(t)
		result := w.mustTeardown()
		if diff := cmp.Diff([]string{"delete ConfigMap b", "delete ConfigMap c", "delete ConfigMap a"}, w.wrote()); diff != "" || result.Inventory.Len() != 0 {
			t.Errorf("a and b wait for each other; what the author has later goes first (-want +got):\n%s\nleft %v", diff, result.Inventory)
		}
	})
	t.Run("when it is pruned", func(t *testing.T) {
		t.Parallel()
		w := turned(t)
		w.load(`components: other: objects: o: ` + configMap("other", ""))
		w.mustRun()
		if left := w.object("ConfigMap", "a"); left != nil || w.inventory.Len() != 1 {
			t.Errorf("left in the inventory: %v", w.inventory)
		}
	})
	t.Run("when the objects say so", func(t *testing.T) {
		t.Parallel()
		w := turned(t)
		var all []*unstructured.Unstructured
		for _, name := range []string{"a", "b", "c"} {
			u := w.object("ConfigMap", name)
			marks := u.GetAnnotations()
			marks[ownership.AfterAnnotation] = map[string]string{"a": "b", "b": "c,b", "c": "a"}[name]
			u.SetAnnotations(marks)
			all = append(all, u)
		}
		w.inventory, _ = ownership.Rebuild(w.owner, all)
		if left := w.mustTeardown().Inventory; left.Len() != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// A component that needs another one no longer must not be deleted as if it did.
func TestTheInventoryForgetsTheEdgesThatWereTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: db: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "db"}
components: web: {
	if cr.spec.on {dependsOn: db: {}}
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
}
`)
	edges := func() map[string][]string {
		out := map[string][]string{}
		for _, g := range w.inventory {
			if len(g.DependsOn) > 0 {
				out[g.Component] = g.DependsOn
			}
		}
		return out
	}
	w.mustRun()
	if diff := cmp.Diff(map[string][]string{"web": {"db"}}, edges()); diff != "" {
		t.Errorf("edges at first (-want +got):\n%s", diff)
	}
	w.spec["on"] = false
	w.mustRun()
	if diff := cmp.Diff(map[string][]string{}, edges()); diff != "" {
		t.Errorf("edges without the dependency (-want +got):\n%s", diff)
	}
}
