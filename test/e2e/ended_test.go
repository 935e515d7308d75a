package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ending has a Job that removes itself, what waits for it, and one that fails.
const ending = `
live: _
#Spec: {text: string | *"a", ttl: int | *0, fails: bool | *false, poke: string | *""}

components: migrate: {
	objects: job: {
		apiVersion: "batch/v1"
		kind:       "Job"
		metadata: {name: "migrate-\(cr.metadata.name)", annotations: poke: cr.spec.poke}
		spec: {
			ttlSecondsAfterFinished: cr.spec.ttl
			backoffLimit:            0
			if cr.spec.fails {activeDeadlineSeconds: 1, suspend: false}
			template: spec: {
				restartPolicy: "Never"
				containers: [{name: "main", image: "busybox:1", args: [cr.spec.text]}]
				if cr.spec.fails {nodeSelector: none: "such"}
			}
		}
	}
	verify: done: live.migrate.job.status.succeeded >= 1
}
components: after: {
	dependsOn: migrate: {}
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "after-\(cr.metadata.name)", data: at: live.migrate.job.status.completionTime}
}
`

// lingers is how long a test waits for a Job to be made anew that should not be: it
// takes one second to run.
const lingers = 8 * time.Second

// expectStays expects the condition Ready of a resource to keep its reason for a while.
func (s *site) expectStays(cr *unstructured.Unstructured, reason string) {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < lingers; {
		if err := s.after(40 * time.Millisecond); err != nil {
			s.t.Fatal(err)
		}
		u, err := read(s.t.Context(), cr)
		if err != nil {
			s.t.Fatal(err)
		}
		if c := condition(u, "Ready"); c["reason"] != reason {
			s.t.Fatalf("%s after %s, Ready is %v: %v: %v", reason, since(began), c["status"], c["reason"], c["message"])
		}
	}
}

// after waits for a time, unless the test ends.
func (s *site) after(d time.Duration) error {
	select {
	case <-s.t.Context().Done():
		return s.t.Context().Err()
	case <-time.After(d):
		return nil
	}
}

func TestAJobThatRemovesItselfRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "once", ending)
	o := s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	s.expectNoJobs()
	s.expectStays(cr, "Ready")
	s.expectJobsWritten(from, 1)
	t.Logf("inventory: %v", field(s.expectAllReady(cr), "status", "inventory"))

	o.stop()
	s.operate(p.dir)
	s.patch(cr, spec(map[string]any{"poke": "a label or an annotation"}))
	s.settle()
	s.expectAllReady(cr)
	s.expectJobsWritten(from, 1)

	s.patch(cr, spec(map[string]any{"text": "b"}))
	s.expectAllReady(cr)
	s.expectStays(cr, "Ready")
	s.expectJobsWritten(from, 2)
}

func TestAJobThatRemovesItselfWhileNobodyLooksRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "unseen", ending)
	o := s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "shop", map[string]any{"ttl": int64(3)}))
	s.expectAllReady(cr)
	o.kill() // as a crash would, and the Job goes meanwhile
	s.expectNoJobs()
	s.operate(p.dir)
	s.settle()
	s.expectAllReady(cr)
	s.expectJobsWritten(from, 1)
}

func TestAJobThatIsDeletedBeforeItIsCompleteIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "failing", ending)
	s.operate(p.dir)
	from := mark(t)
	cr := s.create(p.thing(s, "shop", map[string]any{"fails": true}))
	job := object("batch/v1", "Job", s.namespace, "migrate-shop")
	// A Job that goes before its controller has made its pod may leave the next one of its
	// name without one.
	s.expectThat(job, "to run", func(u *unstructured.Unstructured) error {
		if field(u, "status", "active") != int64(1) {
			return errNotYet
		}
		return nil
	})
	s.delete(job)
	// It fails, and is gone: it stays failed until somebody asks.
	s.expectNotReady(cr, "ObjectFailed", "Job", "failed")
	s.expectNoJobs()
	s.expectStays(cr, "ObjectFailed")
	s.expectNotReady(cr, "ObjectFailed", "operetta.dev/reconcile-at")
	s.expectJobsWritten(from, 2)
	s.patch(cr, annotation("operetta.dev/reconcile-at", "now"))
	s.expectThat(job, "to run again", exists)
	s.expectNoJobs()
	s.expectNotReady(cr, "ObjectFailed", "operetta.dev/reconcile-at")
	s.expectStays(cr, "ObjectFailed")
	s.expectJobsWritten(from, 3)
}
