package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

func TestAJobThatIsDeletedSomeTimeAfterItsEndRunsOnce(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := copyFolder(t, fixture("queue"), map[string]string{"backoffLimit: 3": "backoffLimit: 3, ttlSecondsAfterFinished: 1"})
	s.StartOperator(p.dir)
	cr := s.sample("queue")
	from := harness.MarkAudit(t)
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.ExpectGone(s.Ref("Job", "orders-prepare"))
	began := time.Now()
	harness.Eventually(t, "the end of the watch", func() error {
		if time.Since(began) < refusedFor {
			return harness.ErrNotYet
		}
		return nil
	})
	s.ExpectResourceReady(cr)
	jobs := s.OperatorRequests(from).OfResource("jobs").Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(jobs) != 1 {
		t.Errorf("the Job was created %d times", len(jobs))
	}
	// A Job with different content runs again.
	s.Patch(cr, harness.Spec(map[string]any{"image": "broker:4.3"}))
	s.ExpectObject(s.Ref("StatefulSet", "orders"), "to be of the new image", ofImage("broker:4.3"))
	s.ExpectResourceReady(cr)
	jobs = s.OperatorRequests(from).OfResource("jobs").Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(jobs) != 2 {
		t.Errorf("the Job was created %d times for two contents", len(jobs))
	}
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}
