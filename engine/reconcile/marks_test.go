package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
)

// marked is a ConfigMap of somebody who knows the name of the bench's resource, and not its
// UID.
func marked(namespace, name string, marks map[string]string) map[string]any {
	owner := ownership.Owner{Ref: cluster.Ref{GroupVersionKind: shopKind, Namespace: shopKey.Namespace, Name: shopKey.Name}}
	u := &unstructured.Unstructured{Object: settings(namespace, name, map[string]any{"text": "carol's"})}
	ownership.Mark(u, owner)
	annotations := u.GetAnnotations()
	delete(annotations, ownership.OwnerUIDAnnotation)
	maps.Copy(annotations, marks)
	u.SetAnnotations(annotations)
	u.SetFinalizers([]string{"example.com/evil"})
	return u.Object
}

// carols are objects with marks that would poison an inventory.
var carols = map[string]map[string]string{
	"odd":   {ownership.ComponentAnnotation: "/"},
	"after": {ownership.ComponentAnnotation: "web/x", ownership.AfterAnnotation: "config,availability,web"},
	"long":  {ownership.ComponentAnnotation: strings.Repeat("a", 10_000) + "/x"},
	"plain": {ownership.ComponentAnnotation: "base/o", ownership.AppliedAnnotation: "0123456789abcdef"},
	"guess": {ownership.ComponentAnnotation: "base/o", ownership.OwnerUIDAnnotation: "uid-0"},
}

func TestMarksThatSomebodyElseWroteHarmNobody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, body, namespace string
		// told says that the resource's people are told of them.
		told bool
	}{
		"elsewhere":                             {"the package does not reach there, and nobody even looks", near, "tenant-a", false},
		"elsewhere, where the package reaches":  {"its objects there have the UID in their marks", ordered, "tenant-a", true},
		"in the namespace of the resource":      {"who makes ConfigMaps there may not make others theirs", near, shopKey.Namespace, true},
		"there, and the package reaches beyond": {"as before", ordered, shopKey.Namespace, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			for name, marks := range carols {
				b.put(marked(row.namespace, name, marks))
			}
			act(t, b.memory, map[string]any{"size": int64(2)}) // it was changed before it was looked at, and may have lost its status
			b.rest()
			b.expect(row.reason, "True Ready")
			for _, g := range inventory(t, b.status()) {
				for _, e := range g.Objects {
					if carols[e.Name] != nil {
						t.Errorf("%s: %s is in the inventory", row.reason, e.Name)
					}
				}
			}
			for name := range carols {
				told := slices.ContainsFunc(b.events, func(e rollout.Event) bool {
					return e.Reason == "MarksIgnored" && e.Warning && strings.Contains(e.Message, "ConfigMap "+row.namespace+"/"+name)
				})
				if told != row.told {
					t.Errorf("%s: told of %s: %v, want %v: %v", row.reason, name, told, row.told, b.events)
				}
			}

			// The documented remedy does not let them in either, nor does the deletion wait for them.
			b.wipe()
			b.rest()
			b.expect(row.reason, "True Ready")
			b.wipe()
			act(t, b.memory, deleted)
			b.rest()
			left := b.find("Shop", shopKey.Name)
			if left != nil {
				t.Errorf("%s: its deletion hangs: %v", row.reason, left.Object["status"])
			}
			for name := range carols {
				if u := b.find("ConfigMap", name); u == nil || u.GetDeletionTimestamp() != nil || len(u.GetManagedFields()) > 1 {
					t.Errorf("%s: %s was written or deleted", row.reason, name)
				}
			}
		})
	}
}

// near is a package whose objects are all in the namespace of the resource.
const near = `
components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-base", data: text: "base"}
components: web: {dependsOn: base: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-web", data: text: "web"}}
`

// TestAnUpgradeStrandsNothing has objects as an engine has left them that did not write UIDs
// into its marks: the inventory and the marks confirm each other.
func TestAnUpgradeStrandsNothing(t *testing.T) {
	t.Parallel()
	upgraded := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, ordered)
		b.rest()
		for _, u := range b.memory.Objects() {
			marks := u.GetAnnotations()
			if marks[ownership.OwnerUIDAnnotation] == "" {
				continue
			}
			delete(marks, ownership.OwnerUIDAnnotation)
			u.SetAnnotations(marks)
			if _, err := b.memory.Put("operetta", u); err != nil {
				t.Fatal(err)
			}
		}
		b.restart()
		return b
	}
	t.Run("when the resource goes on", func(t *testing.T) {
		t.Parallel()
		b := upgraded(t)
		b.rest()
		b.expect("all is its own", "True Ready")
		for _, name := range b.names() {
			for _, kind := range []string{"ConfigMap", "ClusterRole"} {
				if u := b.find(kind, name); u != nil && u.GetAnnotations()[ownership.OwnerUIDAnnotation] == "" {
					t.Errorf("%s was not marked anew", name)
				}
			}
		}
	})
	t.Run("when the resource is deleted", func(t *testing.T) {
		t.Parallel()
		b := upgraded(t)
		act(t, b.memory, deleted)
		b.rest()
		if diff := cmp.Diff([]string{"shop-kept"}, b.names()); diff != "" {
			t.Errorf("left behind (-want +got):\n%s", diff)
		}
	})
	t.Run("when an object is not wanted any more", func(t *testing.T) {
		t.Parallel()
		b := upgraded(t)
		act(t, b.memory, map[string]any{"name": "store"})
		b.rest()
		if diff := cmp.Diff([]string{"store-base", "store-top", "store-role", "store-far", "store-kept", "shop-kept"}, b.names(), unordered); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestWhatAnEarlierResourceOfThatNameHasLeftBehindIsTakenOver: it has the same name in its
// marks and another UID, and its content is that of its policy.
func TestWhatAnEarlierResourceOfThatNameHasLeftBehindIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: base: {
	objects: plain: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "plain", data: text: "new"}
	objects: once: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "once", data: text: string | *"first"}
	policy: once: {apply: "createOnly", delete: "orphan"}
	policy: plain: delete: "orphan"
}
status: text: live.base.once.data.text
`)
	b.rest()
	was := b.find("ConfigMap", "once").GetAnnotations()[ownership.OwnerUIDAnnotation]
	act(t, b.memory, deleted)
	b.rest()
	once := b.find("ConfigMap", "once")
	once.Object["data"] = map[string]any{"text": "changed by hand"}
	if _, err := b.memory.Put("person", once); err != nil {
		t.Fatal(err)
	}
	act(t, b.memory, map[string]any{})
	b.rest()
	b.expect("B2: they were left behind for it", "True Ready")
	for _, name := range []string{"plain", "once"} {
		if got := b.find("ConfigMap", name).GetAnnotations()[ownership.OwnerUIDAnnotation]; got == was || got != string(b.find("Shop", shopKey.Name).GetUID()) {
			t.Errorf("%s is marked as that of %s", name, got)
		}
	}
	if got := b.data("once", "text"); got != "changed by hand" || b.status()["text"] != got {
		t.Errorf("what is created only was written over: %q, and the status says %v", got, b.status()["text"])
	}
	before := len(b.memory.Changes())
	b.rest()
	if wrote := b.memory.Changes()[before:]; len(wrote) > 0 {
		t.Errorf("it is not at rest: %v", wrote)
	}
}
