package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// reportsIdentityCollision returns a check that components have failed because they render the same
// object, and that the message has the place in the package.
func reportsIdentityCollision(names ...string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		c := harness.Condition(u, "Ready")
		if c["status"] != "False" || c["observedGeneration"] != u.GetGeneration() {
			return fmt.Errorf("Ready is %v", c)
		}
		for i, name := range names {
			got, other := harness.Component(u, name), names[(i+1)%len(names)]
			message, _ := got["message"].(string)
			if got["state"] != "Failed" || !harness.ContainsAll(message, []string{"bus-a-b", other, fixtures + "/kafka/topics.cue:"}) {
				return fmt.Errorf("the component %s says %v", name, got)
			}
		}
		return nil
	}
}

func TestTwoTopicsWhoseNamesGiveOneObjectAreBothFaultsAndNeitherIsWritten(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	cr.Object["spec"].(map[string]any)["topics"] = []any{
		map[string]any{"name": "a_b", "partitions": int64(2)}, map[string]any{"name": "a-b", "partitions": int64(3)}, map[string]any{"name": "clicks"},
	}
	s.Create(cr.DeepCopy())
	got := s.ExpectObject(cr, "to say that two topics are one object", reportsIdentityCollision("topic-a_b", "topic-a-b"))
	t.Log(harness.Condition(got, "Ready"))
	// The other components are still reconciled.
	s.ExpectResourceReady(s.kafkaTopic("clicks"))
	s.ExpectObject(s.Ref("StatefulSet", "bus"), "to be rolled out", isRolled)
	s.expectFewRequests()
	if u, err := harness.GetOrNil(t.Context(), s.kafkaTopic("a-b")); u != nil || err != nil {
		t.Errorf("one of them was written (error %v)", err)
	}
	s.setTopics(cr, map[string]any{"name": "a-b", "partitions": 3}, map[string]any{"name": "clicks"})
	s.ExpectResourceReady(cr)
	s.ExpectData("topic-bus-a-b", "topic", "a-b")
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}

func TestATopicWhoseNameGivesTheObjectOfAnotherLeavesThatAsItIs(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	first := map[string]any{"name": "a-b", "partitions": int64(3)}
	cr.Object["spec"].(map[string]any)["topics"] = []any{first}
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	before := s.ExpectResourceReady(s.kafkaTopic("a-b"))
	s.setTopics(cr, first, map[string]any{"name": "a_b", "partitions": 9}, map[string]any{"name": "clicks"})
	s.ExpectObject(cr, "to say that two topics are one object", reportsIdentityCollision("topic-a_b", "topic-a-b"))
	s.ExpectResourceReady(s.kafkaTopic("clicks"))
	s.expectFewRequests()
	if after := s.ExpectResourceReady(s.kafkaTopic("a-b")); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the topic that was there was changed to %s", harness.Encode(t, after.Object))
	}
	s.setTopics(cr, first, map[string]any{"name": "clicks"})
	s.ExpectResourceReady(cr)
	if after := s.ExpectResourceReady(s.kafkaTopic("a-b")); after.GetUID() != before.GetUID() {
		t.Error("the topic that was there is another")
	}
}
