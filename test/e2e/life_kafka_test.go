package e2e

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// kafkaTopic returns the object of a topic of the sample.
func (s *env) kafkaTopic(name string) *unstructured.Unstructured {
	return harness.Object("kafka.example.com/v1", "KafkaTopic", s.Namespace, "bus-"+name)
}

// setTopics changes the topics of a cluster.
func (s *env) setTopics(cr *unstructured.Unstructured, topics ...map[string]any) {
	s.T.Helper()
	s.Patch(cr, harness.Spec(map[string]any{"topics": topics}))
}

func TestAKafkaClusterAndItsTopicsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	clicks := map[string]any{"name": "clicks", "partitions": 6, "replicas": 2}
	views := map[string]any{"name": "page_views", "partitions": 3}
	audit := map[string]any{"name": "audit", "keep": true}
	s.live(
		step{"it is ready with its topics and one write for each object", func(s *env) {
			s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) },
				cr, s.kafkaTopic("clicks"), s.kafkaTopic("page-views"), s.kafkaTopic("audit"))
			s.ExpectData("topic-bus-page-views", "topic", "page_views")
			s.ExpectData("topic-bus-audit", "config.retention.ms", "-1")
		}},
		step{"each broker that comes has an address, and loses it when it goes", func(s *env) {
			for _, n := range []int{5, 2} {
				s.Kubectl("scale", "kafkas.kafka.example.com/bus", fmt.Sprint("--replicas=", n))
				s.ExpectResourceReady(cr)
				for i := range 6 {
					if u, err := s.Lookup("Service", fmt.Sprint("bus-", i)); (u != nil) != (i < n) || err != nil {
						s.T.Errorf("of %d brokers, that the Service of number %d is there is %t (error %v)", n, i, u != nil, err)
					}
				}
			}
			s.Patch(cr, harness.Spec(map[string]any{"external": false}))
			s.ExpectResourceReady(cr)
			s.ExpectGone(s.Ref("Service", "bus-0"))
		}},
		step{"topics come and go one by one, and one that is to be kept stays", func(s *env) {
			s.expectBudget(func() {
				s.setTopics(cr, clicks, audit, map[string]any{"name": "orders", "partitions": 2})
				s.ExpectResourceReady(cr)
				s.ExpectResourceReady(s.kafkaTopic("orders"))
			}, cr, s.kafkaTopic("orders"))
			s.ExpectGone(s.kafkaTopic("page-views"))
			s.ExpectGone(s.Ref("ConfigMap", "topic-bus-page-views"))
			s.setTopics(cr, clicks, views)
			s.ExpectResourceReady(cr)
			s.ExpectGone(s.kafkaTopic("orders"))
			s.ExpectResourceReady(s.kafkaTopic("audit"))
			s.setTopics(cr, clicks, views, audit)
			s.ExpectResourceReady(cr)
		}},
		step{"more partitions reach the brokers, and more replicas than brokers are refused", func(s *env) {
			more := map[string]any{"name": "clicks", "partitions": 12, "replicas": 2}
			s.setTopics(cr, more, views, audit)
			s.ExpectResourceReady(cr)
			s.ExpectData("topic-bus-clicks", "partitions", "12")
			s.expectRefused(cr, harness.Spec(map[string]any{"topics": []any{map[string]any{"name": "clicks", "replicas": 3}}}), "a topic cannot have more replicas than there are brokers")
			s.expectRefused(cr, harness.Spec(map[string]any{"topics": []any{map[string]any{"name": "Clicks"}}}), "spec.topics[0].name")
		}},
		step{"a topic that is changed or deleted by hand is as before, with what it is made of", func(s *env) {
			s.expectUndone(s.kafkaTopic("clicks"), harness.Spec(map[string]any{"replicas": 1}))
			s.ExpectData("topic-bus-clicks", "replicas", "2")
			s.expectUndone(s.Ref("ConfigMap", "topic-bus-clicks"), map[string]any{"data": map[string]any{"partitions": "99"}})
			for _, u := range []*unstructured.Unstructured{s.kafkaTopic("page-views"), s.Ref("ConfigMap", "topic-bus-page-views"), s.Ref("StatefulSet", "bus")} {
				s.expectRestored(u)
			}
			s.ExpectResourceReady(cr)
		}},
		step{"it goes with its topics, brokers last, and leaves the one that is kept", func(s *env) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr}, s.kafkaTopic("audit"))
			s.expectBefore(order, "kafkatopics bus-clicks", "statefulsets bus")
			s.expectBefore(order, "kafkatopics bus-page-views", "services bus")
			if slices.Contains(order, "kafkatopics bus-audit") {
				s.T.Error("the topic was deleted")
			}
			s.ExpectGone(s.Ref("ConfigMap", "topic-bus-clicks"))
			s.ExpectResourceReady(s.kafkaTopic("audit"))
			s.expectNothingLeft([]*unstructured.Unstructured{s.kafkaTopic("audit")})
		}},
	)
}

func TestAKafkaTopicOfNoClusterLivesByItself(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("kafkatopic"))
	cr := s.sample("kafkatopic")
	s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, cr)
	s.expectRefused(cr, harness.Spec(map[string]any{"partitions": 3}), "spec.partitions", "fewer partitions")
	s.expectRefused(cr, harness.Spec(map[string]any{"topic": "taps"}), "spec.topic", "immutable")
	s.expectWritten(s.expectBudget(func() {
		s.Patch(cr, harness.Spec(map[string]any{"partitions": 9}))
		s.ExpectResourceReady(cr)
	}, cr), "configmaps")
	s.ExpectData("topic-clicks", "partitions", "9")
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}

// TestAKafkaClusterWhoseOperatorIsKilledIsWholeAndGoesWhole: the operator is killed during the
// creation, after it has begun to write topics, and during the deletion, after it has begun to delete
// them.
func TestAKafkaClusterWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.expectSurvived(s.sample("kafka"), 9, 3, []*unstructured.Unstructured{s.kafkaTopic("audit")}, fixture("kafka"), fixture("kafkatopic"))
	for _, name := range []string{"topic-bus-clicks", "topic-bus-page-views"} {
		s.ExpectGone(s.Ref("ConfigMap", name))
	}
	s.ExpectResourceReady(s.kafkaTopic("audit"))
	s.expectNothingLeft([]*unstructured.Unstructured{s.kafkaTopic("audit")})
}
