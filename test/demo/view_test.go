package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// waiting is a resource whose servers start, in the form in which the API server
// answers.
const waiting = `{
	"apiVersion": "example.com/v1", "kind": "WebApp",
	"metadata": {"name": "shop", "namespace": "default", "generation": 2},
	"status": {
		"observedGeneration": 2, "phase": "Waiting", "componentsReady": "1/3",
		"components": [
			{"name": "config", "state": "Verified", "reason": "Verified"},
			{"name": "ingress", "state": "Excluded", "reason": "Excluded"},
			{"name": "web", "state": "Applied", "reason": "NotReady", "message": "available is false:\n 1 >= 3 (web.cue:54)"},
			{"name": "availability", "state": "Failed", "reason": "InvalidObject", "message": "maxUnavailable: 0 is out of bounds"}
		],
		"inventory": [
			{"component": "config", "objects": [{"object": "configmap", "apiVersion": "v1", "kind": "ConfigMap", "name": "shop"}]},
			{"component": "web", "dependsOn": ["config"], "objects": [
				{"object": "deployment", "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
				{"object": "service", "apiVersion": "v1", "kind": "Service", "name": "shop"}
			]},
			{"component": "availability", "dependsOn": ["web", "config"], "objects": [{"object": "pdb", "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "name": "shop"}]},
			{"component": "former", "objects": [{"object": "job", "apiVersion": "batch/v1", "kind": "Job", "name": "old"}]}
		]
	}
}`

func viewOf(t *testing.T, text string) view {
	t.Helper()
	var v view
	if err := json.Unmarshal([]byte(text), &v.resource); err != nil {
		t.Fatal(err)
	}
	v.objects = map[entry]live{}
	return v
}

// object adds a live object.
func (v view) object(t *testing.T, apiVersion, kind, name, text string) {
	t.Helper()
	var l live
	if err := json.Unmarshal([]byte(text), &l.object); err != nil {
		t.Fatal(err)
	}
	v.objects[entry{APIVersion: apiVersion, Kind: kind, Name: name}] = l
}

func expectDrawing(t *testing.T, v view, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Trim(want, "\n"), strings.Join(v.draw(false), "\n")); diff != "" {
		t.Errorf("the drawing (-want +got):\n%s", diff)
	}
}

func TestDrawingShowsWhatEachComponentWaitsFor(t *testing.T) {
	v := viewOf(t, waiting)
	v.object(t, "apps/v1", "Deployment", "shop", `{"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}`)
	v.object(t, "batch/v1", "Job", "old", `{"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}`)
	v.objects[entry{APIVersion: "v1", Kind: "Service", Name: "shop"}] = live{absent: true}
	expectDrawing(t, v, `
WebApp/shop  Waiting  1/3 components
config  ✓ Verified
│ · ConfigMap/shop
└─ web  … Applied
   │ · available is false: 1 >= 3 (web.cue:54)
   │ · Deployment/shop  1/3 ready
   │ · Service/shop  does not exist
   └─ availability  ✗ Failed
        · maxUnavailable: 0 is out of bounds
        · PodDisruptionBudget/shop
former  - Deleting
  · Job/old  being deleted
not wanted by the spec: ingress
`)
	if v.resource.ready() {
		t.Error("it counts as Ready")
	}
}

func TestDrawingOfAResourceWithoutComponents(t *testing.T) {
	v := viewOf(t, `{"kind": "WebApp", "metadata": {"name": "shop", "generation": 1}}`)
	expectDrawing(t, v, "WebApp/shop  no status yet")
	v.absent = true
	expectDrawing(t, v, "WebApp/shop  does not exist")
}

func TestReadyOfTheSpecBeforeIsNotReady(t *testing.T) {
	const status = `{"kind": "WebApp", "metadata": {"name": "shop", "generation": %g}, "status": {"observedGeneration": 1, "phase": "Ready", "componentsReady": "0/0"}}`
	now := viewOf(t, strings.Replace(status, "%g", "1", 1))
	before := viewOf(t, strings.Replace(status, "%g", "2", 1))
	if !now.resource.ready() || before.resource.ready() {
		t.Errorf("ready: %v now, %v before", now.resource.ready(), before.resource.ready())
	}
	expectDrawing(t, before, "WebApp/shop  Ready  0/0 components  (of the spec before)")
}
