package e2e

import (
	"testing"
	"time"

	"operetta.dev/test/controlplane"
)

// immutableJob is a package with an object whose change an API server rejects.
const immutableJob = `#Spec: {image: string, note: string | *"none"}
components: setup: objects: job: {
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: name: cr.metadata.name
	spec: template: spec: {
		restartPolicy: "Never"
		containers: [{name: "setup", image: cr.spec.image}]
	}
}
components: beside: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: note:     cr.spec.note
}
`

// observed is how long a test counts the requests of an operator that should be quiet.
const observed = 10 * time.Second

// quietFor fails when the operator changes objects of a kind more often within a while. What is
// expected not to happen can only be waited for.
func (s *site) quietFor(from controlplane.AuditMark, kind string, want int) {
	s.t.Helper()
	timer := time.NewTimer(observed)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
	asked := s.operatorRequests(from)
	s.t.Logf("requests in %s: %s", observed, asked)
	if n := len(asked.about(kind).verbs("patch", "update")); n != want {
		s.t.Errorf("%d writes of %s, want %d: %s", n, kind, want, asked)
	}
}

func TestRejectedObjectIsNotOfferedAgainUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "immutable", immutableJob)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "orders", map[string]any{"image": "broker:4.2"}))
	s.expectAllReady(cr)

	from := mark(t)
	s.patch(cr, spec(map[string]any{"image": "broker:4.3"}))
	message := s.expectNotReady(cr, "ObjectRejected", "setup: ", "Job "+s.namespace+"/orders", "immutable", "immutable.cue:", "recreateOnImmutable")
	t.Logf("Ready: %s", message)
	s.quietFor(from, "jobs", 1)

	// What happens to another object is no reason to offer the rejected one again.
	from = mark(t)
	for range pokes {
		s.delete(s.ref("ConfigMap", "orders"))
		s.expectThat(s.ref("ConfigMap", "orders"), "to return", exists)
	}
	if n := len(s.operatorRequests(from).about("jobs").verbs("patch")); n != 0 {
		t.Errorf("the rejected Job was offered %d times while another object was repaired", n)
	}

	// A change by the user is tried at once, and so is a change of the object itself.
	from = mark(t)
	s.patch(cr, spec(map[string]any{"image": "broker:4.4"}))
	s.quietFor(from, "jobs", 1)
	s.delete(object("batch/v1", "Job", s.namespace, "orders"))
	s.expectAllReady(cr)
}

// topics is a package with an object for each topic, whose names may be the same.
const topics = `#Spec: topics: [string]: string
components: {for t, name in cr.spec.topics {(t): objects: topic: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: "name": "\(cr.metadata.name)-\(name)"
	data: topic:      t
}}}
`

func TestTwoObjectsOfOneNameAreAFaultOfBothAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "topics", topics)
	s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "bus", map[string]any{"topics": map[string]any{"a_b": "a-b", "a-b": "a-b", "other": "other"}}))
	message := s.expectNotReady(cr, "DuplicateObject", "components.a_b.objects.topic", "components.a-b.objects.topic", "topics.cue:", "ConfigMap", "bus-a-b")
	t.Logf("Ready: %s", message)
	s.expectData("bus-other", "topic", "other")
	s.settle()
	asked := s.operatorRequests(from)
	t.Logf("requests: %s", asked)
	if n := len(asked.about("configmaps").verbs("patch", "create")); n != 1 {
		t.Errorf("%d ConfigMaps were written, want that of the other topic alone", n)
	}
	s.patch(cr, spec(map[string]any{"topics": map[string]any{"a-b": nil}}))
	s.expectData("bus-a-b", "topic", "a_b")
	s.expectAllReady(cr)
}

// misspelled is a package with two fields that a Deployment does not have, and one of
// another type.
const misspelled = `#Spec: image: string
components: web: objects: deployment: {
	apiVersion: "apps/v1"
	kind:       "Deployment"
	metadata: name: cr.metadata.name
	spec: {
		replica: 3
		selector: matchLabels: app: "web"
		template: metadata: labels: app: "web"
		template: spec: containers: [{
			name:  "web"
			image: cr.spec.image
			readynessProbe: {}
		}]
		minReadySeconds: "ten"
	}
}
`

func TestMisspelledFieldsAreAllNamedWithTheirLinesAndStopTheResource(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "misspelled", misspelled)
	s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "shop", map[string]any{"image": "nginx:1.25"}))
	message := s.expectNotReady(cr, "ObjectRejected", "spec.replica", "misspelled.cue:17", "readynessProbe", "misspelled.cue:23", "spec.minReadySeconds", "misspelled.cue:25")
	t.Logf("Ready: %s", message)
	now, err := read(t.Context(), cr)
	if err != nil {
		t.Fatal(err)
	}
	if got := condition(now, "Stalled"); got["status"] != "True" {
		t.Errorf("Stalled is %v", got)
	}
	s.quietFor(from, "deployments", 1)
}
