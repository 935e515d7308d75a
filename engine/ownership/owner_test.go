package ownership_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

func TestAnObjectThatHasLostItsMarksIsClassified(t *testing.T) {
	t.Parallel()
	other := owner
	other.Name = "other"
	annotate := func(value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{ownership.OwnerAnnotation: value})
			if value == "" {
				u.SetAnnotations(nil)
			}
		}
	}
	label := func(value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{ownership.OwnerLabel: value})
			if value == "" {
				u.SetLabels(nil)
			}
		}
	}
	rows := map[string]struct {
		reason string
		edit   []func(*unstructured.Unstructured)
		// known says that the inventory has the object with its UID.
		known bool
		want  ownership.Situation
		whose string
	}{
		"its annotations, and is not known": {"its label is the owner's name, which everybody knows", []func(*unstructured.Unstructured){annotate("")}, false, ownership.Unproven, ""},
		"its annotations, and is known":     {"E7: the label and the inventory confirm each other", []func(*unstructured.Unstructured){annotate("")}, true, ownership.Owned, ""},
		"its UID, and is not known":         {"the owner's name is not its UID", []func(*unstructured.Unstructured){annotate(owner.String())}, false, ownership.Unproven, ""},
		"its UID, and is known":             {"so an engine before this one has left it", []func(*unstructured.Unstructured){annotate(owner.String())}, true, ownership.Owned, ""},
		"its label":                         {"E7: the annotations say as much", []func(*unstructured.Unstructured){label("")}, false, ownership.Owned, ""},
		"all, and is known":                 {"E7: it was written by this resource, and nothing proves that now", []func(*unstructured.Unstructured){annotate(""), label("")}, true, ownership.Unproven, ""},
		"all with all fields, and is known": {"the inventory alone proves nothing", []func(*unstructured.Unstructured){annotate(""), label(""), func(u *unstructured.Unstructured) { delete(u.Object, "data") }}, true, ownership.Foreign, "an unknown manager"},
		"all with all fields, which another has instead": {
			"E6: a field of somebody else proves nothing",
			[]func(*unstructured.Unstructured){annotate(""), label(""), func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"theirs": "x"} }}, true, ownership.Foreign, "manager somebody",
		},
		"all, and is not known":                    {"E6: another object of that name", []func(*unstructured.Unstructured){annotate(""), label("")}, false, ownership.Foreign, "an unknown manager"},
		"them to another":                          {"E6: it was taken over", []func(*unstructured.Unstructured){annotate(other.String()), label(other.Label())}, true, ownership.Foreign, other.String()},
		"them to another, by its annotation alone": {"E6: so somebody says", []func(*unstructured.Unstructured){annotate(other.String())}, true, ownership.Foreign, other.String()},
		"them to another, whose annotation is lost": {
			"E6: the label is that of another resource", []func(*unstructured.Unstructured){annotate(""), label(other.Label())}, true, ownership.Foreign, "manager somebody",
		},
		"them to a controller": {
			"E6: a controller reference decides",
			[]func(*unstructured.Unstructured){annotate(""), label(""), controlledBy("Other", "o", "9")}, true, ownership.Foreign, "Other o",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stamp(t, rendered(program.Policy{Delete: "orphan"})) // it has no reference
			m := memory.New()
			live, err := m.Apply(t.Context(), d.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			inv := ownership.Inventory{}.With("config", nil, []ownership.Entry{ownership.EntryOf(rendered(program.Policy{}), owner.Namespace, cluster.Namespaced)})
			if row.known {
				inv = inv.WithUIDs(owner.Namespace, live)
			}
			for _, edit := range row.edit {
				edit(live)
			}
			if live, err = m.Put("somebody", live); err != nil {
				t.Fatal(err)
			}
			got, whose := ownership.Classify(live, owner.WithInventory(inv))
			if got != row.want || whose != row.whose {
				t.Errorf("%s: got %s %q, want %s %q", row.reason, got, whose, row.want, row.whose)
			}
		})
	}
}
