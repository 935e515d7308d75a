package e2e

import (
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
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

// quietDuration is how long a test counts the requests of an operator that should be quiet.
const quietDuration = 10 * time.Second

// expectWriteCount fails if the operator changes objects of a kind more often within quietDuration. It
// has to wait for that long, because it expects that something does not happen.
func (s *env) expectWriteCount(from controlplane.AuditMark, kind string, want int) {
	s.T.Helper()
	timer := time.NewTimer(quietDuration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.T.Context().Done():
	}
	asked := s.OperatorRequests(from)
	s.T.Logf("requests in %s: %s", quietDuration, asked)
	if n := len(asked.OfResource(kind).WithVerbs("patch", "update")); n != want {
		s.T.Errorf("%d writes of %s, want %d: %s", n, kind, want, asked)
	}
}

func TestRejectedObjectIsNotOfferedAgainUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "immutable", immutableJob)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "orders", map[string]any{"image": "broker:4.2"}))
	s.ExpectResourceReady(cr)

	from := harness.MarkAudit(t)
	s.Patch(cr, harness.Spec(map[string]any{"image": "broker:4.3"}))
	message := s.ExpectNotReady(cr, "ObjectRejected", "setup: ", "Job "+s.Namespace+"/orders", "immutable", "immutable.cue:", "recreateOnImmutable")
	t.Logf("Ready: %s", message)
	s.expectWriteCount(from, "jobs", 1)

	// A change of another object does not make the operator apply the rejected one again.
	from = harness.MarkAudit(t)
	for range forcedPerCheck {
		s.Delete(s.Ref("ConfigMap", "orders"))
		s.ExpectObject(s.Ref("ConfigMap", "orders"), "to return", harness.Exists)
	}
	if n := len(s.OperatorRequests(from).OfResource("jobs").WithVerbs("patch")); n != 0 {
		t.Errorf("the rejected Job was offered %d times while another object was repaired", n)
	}

	// A change by the user is applied immediately, and so is a change of the object itself.
	from = harness.MarkAudit(t)
	s.Patch(cr, harness.Spec(map[string]any{"image": "broker:4.4"}))
	s.expectWriteCount(from, "jobs", 1)
	s.Delete(harness.Object("batch/v1", "Job", s.Namespace, "orders"))
	s.ExpectResourceReady(cr)
}

// topicsBody is a package with an object for each topic; two names may be equal.
const topicsBody = `#Spec: topics: [string]: string
components: {for t, name in cr.spec.topics {(t): objects: topic: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: "name": "\(cr.metadata.name)-\(name)"
	data: topic:      t
}}}
`

func TestTwoObjectsOfOneNameAreAFaultOfBothAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "topics", topicsBody)
	s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "bus", map[string]any{"topics": map[string]any{"a_b": "a-b", "a-b": "a-b", "other": "other"}}))
	message := s.ExpectNotReady(cr, "DuplicateObject", "components.a_b.objects.topic", "components.a-b.objects.topic", "topics.cue:", "ConfigMap", "bus-a-b")
	t.Logf("Ready: %s", message)
	s.ExpectData("bus-other", "topic", "other")
	s.WaitUntilIdle()
	asked := s.OperatorRequests(from)
	t.Logf("requests: %s", asked)
	if n := len(asked.OfResource("configmaps").WithVerbs("patch", "create")); n != 1 {
		t.Errorf("%d ConfigMaps were written, want that of the other topic alone", n)
	}
	s.Patch(cr, harness.Spec(map[string]any{"topics": map[string]any{"a-b": nil}}))
	s.ExpectData("bus-a-b", "topic", "a_b")
	s.ExpectResourceReady(cr)
}

// misspelledBody is a package with two fields that a Deployment does not have, and one with the
// wrong type.
const misspelledBody = `#Spec: image: string
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
	s := newEnv(t)
	p := newTestPackage(t, "misspelled", misspelledBody)
	s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"image": "nginx:1.25"}))
	message := s.ExpectNotReady(cr, "ObjectRejected", "spec.replica", "misspelled.cue:17", "readynessProbe", "misspelled.cue:23", "spec.minReadySeconds", "misspelled.cue:25")
	t.Logf("Ready: %s", message)
	now, err := harness.GetOrNil(t.Context(), cr)
	if err != nil {
		t.Fatal(err)
	}
	if got := harness.Condition(now, "Stalled"); got["status"] != "True" {
		t.Errorf("Stalled is %v", got)
	}
	s.expectWriteCount(from, "deployments", 1)
}
