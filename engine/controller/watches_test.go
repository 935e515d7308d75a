package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"
)

func TestOnlyMeaningfulChangesOfAResourceReconcileIt(t *testing.T) {
	t.Parallel()
	const before = "{metadata: {uid: a, generation: 1, resourceVersion: '1', labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}"
	for name, row := range map[string]struct {
		reason string
		after  string
		want   bool
	}{
		"the status":             {"the engine wrote it", "{metadata: {uid: a, generation: 1, resourceVersion: '2', labels: {a: b}}, status: {phase: Failed, inventory: []}}", false},
		"the finalizers":         {"the engine wrote them", "{metadata: {uid: a, generation: 1, finalizers: [x], labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}", false},
		"the spec":               {"it asks for something else", "{metadata: {uid: a, generation: 2, labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"a label":                {"the package may read it", "{metadata: {uid: a, generation: 1, labels: {a: c}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"another label":          {"the package may read it", "{metadata: {uid: a, generation: 1, labels: {b: b}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"an annotation":          {"a person asks for something", "{metadata: {uid: a, generation: 1, labels: {a: b}, annotations: {x: z}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"another of the name":    {"nothing of it was done", "{metadata: {uid: b, generation: 1, labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"the deletion":           {"it is to be torn down", "{metadata: {uid: a, generation: 1, deletionTimestamp: '2026-01-01T00:00:00Z', labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"the loss of the status": {"a backup was restored: the inventory has to be rebuilt", "{metadata: {uid: a, generation: 1, labels: {a: b}}}", true},
		"nothing": {
			"it is a resync: what no event has told is noticed then",
			"{metadata: {uid: a, generation: 1, resourceVersion: '1', labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}", true,
		},
		"a question": {
			"a process whose package is broken asks whether another one serves it",
			"{metadata: {uid: a, generation: 1, labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}], conditions: [{type: PackageBroken, reason: Asking}]}}", true,
		},
		"an earlier version": {
			"this process said that it serves",
			"{metadata: {uid: a, generation: 1, labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}], conditions: [{type: PackageBroken, reason: LastGoodVersion}]}}", false,
		},
		"the loss of the inventory": {"a person was asked to remove it", "{metadata: {uid: a, generation: 1, labels: {a: b}}, status: {phase: Ready}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := event.TypedUpdateEvent[client.Object]{ObjectOld: parsed(t, before), ObjectNew: parsed(t, row.after)}
			if got := specOrMetadataChanged.Update(e); got != row.want {
				t.Errorf("%s: got %v", row.reason, got)
			}
		})
	}
}

func TestEachResourceIsLookedAtAgainWithoutACause(t *testing.T) {
	t.Parallel()
	if got := managerOptions(Options{}).Cache.SyncPeriod; got == nil || *got != resync {
		t.Errorf("resources are looked at again every %v, and should be every %s", got, resync)
	}
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(b, &u.Object); err != nil { // whole numbers stay whole
		t.Fatal(err)
	}
	return u
}

func TestAnObjectWithTheUIDOfAnotherResourceWakesNobody(t *testing.T) {
	t.Parallel()
	object := func(uid, refers string) *unstructured.Unstructured {
		u := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a, annotations: {operetta.dev/owner: Shop.example.com default/shop}}}")
		if uid != "" {
			u.SetAnnotations(map[string]string{"operetta.dev/owner": "Shop.example.com default/shop", "operetta.dev/owner-uid": uid})
		}
		if refers != "" {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Shop", Name: "shop", UID: types.UID(refers)}})
		}
		return u
	}
	for name, row := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured // without one of them it was made, or is gone
		known         types.UID
		want          int
	}{
		"its own":                     {"it changes", object("u1", ""), object("u1", ""), "u1", 1},
		"of another UID":              {"it is forged, or of a resource that was there before", object("u2", ""), object("u2", ""), "u1", 0},
		"made with another UID":       {"it is forged", nil, object("u2", ""), "u1", 0},
		"of no UID":                   {"it is from before there were UIDs", object("", ""), object("", ""), "u1", 1},
		"a resource that is unknown":  {"the cache may be late", object("u2", ""), object("u2", ""), "", 1},
		"whose UID was taken away":    {"it was its own, and is repaired", object("u1", ""), object("u2", ""), "u1", 1},
		"that refers to its resource": {"the reference says more than the mark", object("u2", "u1"), object("u2", "u1"), "u1", 1},
		"of another UID that is gone": {"the one that is there now waited for that", object("u2", ""), nil, "u1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := priorityqueue.New[ctrl.Request]("test")
			defer q.ShutDown()
			w := &watches{owner: ownerKind{
				GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, uid: func(types.NamespacedName) types.UID { return row.known },
			}}
			switch h := w.handler(); {
			case row.before == nil:
				h.Create(t.Context(), event.CreateEvent{Object: row.after}, q)
			case row.after == nil:
				h.Delete(t.Context(), event.DeleteEvent{Object: row.before}, q)
			default:
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: row.before, ObjectNew: row.after}, q)
			}
			if got := q.Len(); got != row.want {
				t.Errorf("%s: %d resources were woken, want %d", row.reason, got, row.want)
			}
		})
	}
}
