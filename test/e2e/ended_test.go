package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// endingBody has a Job with a ttl, a component that waits for it, and a Job that fails.
const endingBody = `
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

// finalizerDelay is how long a test waits to see that a Job is not created again. The Job takes one
// second.
const finalizerDelay = 8 * time.Second

// expectStays expects the Ready condition of a resource to keep its reason for some time.
func (s *env) expectStays(cr *unstructured.Unstructured, reason string) {
	s.T.Helper()
	for began := time.Now(); time.Since(began) < finalizerDelay; {
		if err := s.after(40 * time.Millisecond); err != nil {
			s.T.Fatal(err)
		}
		u, err := harness.GetOrNil(s.T.Context(), cr)
		if err != nil {
			s.T.Fatal(err)
		}
		if c := harness.Condition(u, "Ready"); c["reason"] != reason {
			s.T.Fatalf("%s after %s, Ready is %v: %v: %v", reason, harness.Elapsed(began), c["status"], c["reason"], c["message"])
		}
	}
}

// after waits for a time, unless the test ends.
func (s *env) after(d time.Duration) error {
	select {
	case <-s.T.Context().Done():
		return s.T.Context().Err()
	case <-time.After(d):
		return nil
	}
}

func TestAJobThatRemovesItselfRunsOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "once", endingBody)
	o := s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.expectNoJobs()
	s.expectStays(cr, "Ready")
	s.expectJobsWritten(from, 1)
	t.Logf("inventory: %v", harness.Field(s.ExpectResourceReady(cr), "status", "inventory"))

	o.Stop()
	s.StartOperator(p.Dir)
	s.Patch(cr, harness.Spec(map[string]any{"poke": "a label or an annotation"}))
	s.WaitUntilIdle()
	s.ExpectResourceReady(cr)
	s.expectJobsWritten(from, 1)

	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectResourceReady(cr)
	s.expectStays(cr, "Ready")
	s.expectJobsWritten(from, 2)
}

func TestAJobThatRemovesItselfWhileNobodyLooksRunsOnce(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "unseen", endingBody)
	o := s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"ttl": int64(3)}))
	s.ExpectResourceReady(cr)
	o.Kill() // as a crash would, and the Job goes meanwhile
	s.expectNoJobs()
	s.StartOperator(p.Dir)
	s.WaitUntilIdle()
	s.ExpectResourceReady(cr)
	s.expectJobsWritten(from, 1)
}

func TestAJobThatIsDeletedBeforeItIsCompleteIsMadeAnew(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "failing", endingBody)
	s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"fails": true}))
	job := harness.Object("batch/v1", "Job", s.Namespace, "migrate-shop")
	// If a Job is deleted before its controller has created the pod, the next Job with the name may get
	// none.
	s.ExpectObject(job, "to run", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "active") != int64(1) {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Delete(job)
	// The failed Job is gone, and the component stays failed until a person acts.
	s.ExpectNotReady(cr, "ObjectFailed", "Job", "failed")
	s.expectNoJobs()
	s.expectStays(cr, "ObjectFailed")
	s.ExpectNotReady(cr, "ObjectFailed", "operetta.dev/reconcile-at")
	s.expectJobsWritten(from, 2)
	s.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", "now"))
	s.ExpectObject(job, "to run again", harness.Exists)
	s.expectNoJobs()
	s.ExpectNotReady(cr, "ObjectFailed", "operetta.dev/reconcile-at")
	s.expectStays(cr, "ObjectFailed")
	s.expectJobsWritten(from, 3)
}
