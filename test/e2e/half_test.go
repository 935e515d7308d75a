package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// expectAddresses waits until a Service has a number of ready endpoints.
func (s *env) expectAddresses(service string, want int) {
	s.T.Helper()
	harness.Eventually(s.T, fmt.Sprintf("the Service %s to reach %d pods", service, want), func() error {
		reached := 0
		for _, slice := range s.List("discovery.k8s.io/v1", "EndpointSlice") {
			if slice.GetLabels()["kubernetes.io/service-name"] == service {
				endpoints, _ := harness.Field(&slice, "endpoints").([]any)
				reached += len(endpoints)
			}
		}
		if reached != want {
			return fmt.Errorf("it reaches %d", reached)
		}
		return nil
	})
}

func TestASelectorThatCannotBeChangedLeavesTheServiceWithItsPods(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := copyFolder(t, fixture("queue"), nil)
	s.StartOperator(p.dir)
	cr := s.sample("queue")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.expectAddresses("orders", 3)
	service, set := s.Ref("Service", "orders"), s.Ref("StatefulSet", "orders")
	before := map[*unstructured.Unstructured]string{}
	for _, u := range []*unstructured.Unstructured{service, set} {
		before[u] = encodeContent(s, u)
	}
	p.edit("names.cue", `_selector: "app.kubernetes.io/instance": _name`, `_selector: "queues.example.com/name": _name`)
	t.Log(s.ExpectNotReady(cr, "ObjectRejected", "brokers: ", "StatefulSet "+s.Namespace+"/orders", "brokers.cue:"))
	s.expectFewRequests()
	for u, was := range before {
		if now := encodeContent(s, u); now != was {
			t.Errorf("the %s of the component that was refused was changed\nfrom %s\nto   %s", u.GetKind(), was, now)
		}
	}
	s.expectAddresses("orders", 3)

	p.revert("names.cue")
	s.ExpectResourceReady(cr)
	s.expectAddresses("orders", 3)
}

// encodeContent returns the content of an object as text.
func encodeContent(s *env, u *unstructured.Unstructured) string {
	s.T.Helper()
	return string(harness.Encode(s.T, content(s.ExpectObject(u, "to exist", harness.Exists))))
}
