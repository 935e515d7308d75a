package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

func TestAJobThatIsDeletedSomeTimeAfterItsEndRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := copyFolder(t, fixture("queue"), map[string]string{"backoffLimit: 3": "backoffLimit: 3, ttlSecondsAfterFinished: 1"})
	s.operate(p.dir)
	cr := s.sample("queue")
	from := mark(t)
	s.create(cr.DeepCopy())
	s.expectAllReady(cr)
	s.expectGone(s.ref("Job", "orders-prepare"))
	began := time.Now()
	eventually(t, "the end of the watch", func() error {
		if time.Since(began) < refusedFor {
			return errNotYet
		}
		return nil
	})
	s.expectAllReady(cr)
	jobs := s.operatorRequests(from).about("jobs").writes().only(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(jobs) != 1 {
		t.Errorf("the Job was created %d times", len(jobs))
	}
	// Another content is another run.
	s.patch(cr, spec(map[string]any{"image": "broker:4.3"}))
	s.expectThat(s.ref("StatefulSet", "orders"), "to be of the new image", ofImage("broker:4.3"))
	s.expectAllReady(cr)
	jobs = s.operatorRequests(from).about("jobs").writes().only(func(e controlplane.AuditEvent) bool { return e.Code == 201 })
	if len(jobs) != 2 {
		t.Errorf("the Job was created %d times for two contents", len(jobs))
	}
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}
