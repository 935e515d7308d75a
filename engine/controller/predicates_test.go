package controller

import (
	"testing"

	"operetta.dev/engine/controller/watch"
	"operetta.dev/test/inline"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyChangesThatTheEngineDoesNotWriteItselfReconcileAResource(t *testing.T) {
	t.Parallel()
	const before = "{metadata: {uid: a, generation: 1, resourceVersion: '1', labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}"
	for name, row := range map[string]struct {
		reason string
		after  string
		want   bool
	}{
		"the status":             {"the engine wrote it", "{metadata: {uid: a, generation: 1, resourceVersion: '2', labels: {a: b}}, spec: {old: x}, status: {phase: Failed, inventory: []}}", false},
		"the finalizers":         {"the engine wrote them", "{metadata: {uid: a, generation: 1, finalizers: [x], labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", false},
		"the spec":               {"it asks for something else", "{metadata: {uid: a, generation: 2, labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"a field of the spec":    {"its definition has lost it: the API server drops it with the next status, and counts no generation", "{metadata: {uid: a, generation: 1, resourceVersion: '2', labels: {a: b}}, spec: {}, status: {phase: Failed, inventory: [{component: web}]}}", true},
		"a label":                {"the package may read it", "{metadata: {uid: a, generation: 1, labels: {a: c}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"another label":          {"the package may read it", "{metadata: {uid: a, generation: 1, labels: {b: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"an annotation":          {"a person asks for something", "{metadata: {uid: a, generation: 1, labels: {a: b}, annotations: {x: z}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"another of the name":    {"nothing of it was done", "{metadata: {uid: b, generation: 1, labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"the deletion":           {"it is to be torn down", "{metadata: {uid: a, generation: 1, deletionTimestamp: '2026-01-01T00:00:00Z', labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true},
		"the loss of the status": {"a backup was restored: the inventory has to be rebuilt", "{metadata: {uid: a, generation: 1, labels: {a: b}}, spec: {old: x}}", true},
		"nothing": {
			"it is a resync: what no event has told is noticed then",
			"{metadata: {uid: a, generation: 1, resourceVersion: '1', labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}]}}", true,
		},
		"a question": {
			"a process whose package is broken asks whether another one serves it",
			"{metadata: {uid: a, generation: 1, labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}], conditions: [{type: PackageBroken, reason: Asking}]}}", true,
		},
		"an earlier version": {
			"this process said that it serves",
			"{metadata: {uid: a, generation: 1, labels: {a: b}}, spec: {old: x}, status: {phase: Ready, inventory: [{component: web}], conditions: [{type: PackageBroken, reason: LastGoodVersion}]}}", false,
		},
		"the loss of the inventory": {"a person was asked to remove it", "{metadata: {uid: a, generation: 1, labels: {a: b}}, spec: {old: x}, status: {phase: Ready}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := event.TypedUpdateEvent[client.Object]{ObjectOld: inline.Object(t, before), ObjectNew: inline.Object(t, row.after)}
			if got := specOrMetadataChanged.Update(e); got != row.want {
				t.Errorf("%s: got %v", row.reason, got)
			}
		})
	}
}

func TestEachResourceIsLookedAtAgainWithoutACause(t *testing.T) {
	t.Parallel()
	if got := resourceCache(Options{}).SyncPeriod; got == nil || *got != watch.Resync {
		t.Errorf("resources are looked at again every %v, and should be every %s", got, watch.Resync)
	}
}
