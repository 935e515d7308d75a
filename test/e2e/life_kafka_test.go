package e2e

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kafkaTopic returns the object of a topic of the sample.
func (s *site) kafkaTopic(name string) *unstructured.Unstructured {
	return object("kafka.example.com/v1", "KafkaTopic", s.namespace, "bus-"+name)
}

// setTopics changes the topics of a cluster.
func (s *site) setTopics(cr *unstructured.Unstructured, topics ...map[string]any) {
	s.t.Helper()
	s.patch(cr, spec(map[string]any{"topics": topics}))
}

func TestAKafkaClusterAndItsTopicsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	clicks := map[string]any{"name": "clicks", "partitions": 6, "replicas": 2}
	views := map[string]any{"name": "page_views", "partitions": 3}
	audit := map[string]any{"name": "audit", "keep": true}
	s.live(
		step{"it is ready with its topics and one write for each object", func(s *site) {
			s.expectBudget(func() { s.create(cr.DeepCopy()); s.expectAllReady(cr) },
				cr, s.kafkaTopic("clicks"), s.kafkaTopic("page-views"), s.kafkaTopic("audit"))
			s.expectData("topic-bus-page-views", "topic", "page_views")
			s.expectData("topic-bus-audit", "config.retention.ms", "-1")
		}},
		step{"each broker that comes has an address, and loses it when it goes", func(s *site) {
			for _, n := range []int{5, 2} {
				s.kubectl("scale", "kafkas.kafka.example.com/bus", fmt.Sprint("--replicas=", n))
				s.expectAllReady(cr)
				for i := range 6 {
					if u, err := s.find("Service", fmt.Sprint("bus-", i)); (u != nil) != (i < n) || err != nil {
						s.t.Errorf("of %d brokers, that the Service of number %d is there is %t (error %v)", n, i, u != nil, err)
					}
				}
			}
			s.patch(cr, spec(map[string]any{"external": false}))
			s.expectAllReady(cr)
			s.expectGone(s.ref("Service", "bus-0"))
		}},
		step{"topics come and go one by one, and one that is to be kept stays", func(s *site) {
			s.expectBudget(func() {
				s.setTopics(cr, clicks, audit, map[string]any{"name": "orders", "partitions": 2})
				s.expectAllReady(cr)
				s.expectAllReady(s.kafkaTopic("orders"))
			}, cr, s.kafkaTopic("orders"))
			s.expectGone(s.kafkaTopic("page-views"))
			s.expectGone(s.ref("ConfigMap", "topic-bus-page-views"))
			s.setTopics(cr, clicks, views)
			s.expectAllReady(cr)
			s.expectGone(s.kafkaTopic("orders"))
			s.expectAllReady(s.kafkaTopic("audit"))
			s.setTopics(cr, clicks, views, audit)
			s.expectAllReady(cr)
		}},
		step{"more partitions reach the brokers, and more replicas than brokers are refused", func(s *site) {
			more := map[string]any{"name": "clicks", "partitions": 12, "replicas": 2}
			s.setTopics(cr, more, views, audit)
			s.expectAllReady(cr)
			s.expectData("topic-bus-clicks", "partitions", "12")
			s.expectRefused(cr, spec(map[string]any{"topics": []any{map[string]any{"name": "clicks", "replicas": 3}}}), "a topic cannot have more replicas than there are brokers")
			s.expectRefused(cr, spec(map[string]any{"topics": []any{map[string]any{"name": "Clicks"}}}), "spec.topics[0].name")
		}},
		step{"a topic that is changed or deleted by hand is as before, with what it is made of", func(s *site) {
			s.expectUndone(s.kafkaTopic("clicks"), spec(map[string]any{"replicas": 1}))
			s.expectData("topic-bus-clicks", "replicas", "2")
			s.expectUndone(s.ref("ConfigMap", "topic-bus-clicks"), map[string]any{"data": map[string]any{"partitions": "99"}})
			for _, u := range []*unstructured.Unstructured{s.kafkaTopic("page-views"), s.ref("ConfigMap", "topic-bus-page-views"), s.ref("StatefulSet", "bus")} {
				s.expectRestored(u)
			}
			s.expectAllReady(cr)
		}},
		step{"it goes with its topics, brokers last, and leaves the one that is kept", func(s *site) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr}, s.kafkaTopic("audit"))
			s.expectBefore(order, "kafkatopics bus-clicks", "statefulsets bus")
			s.expectBefore(order, "kafkatopics bus-page-views", "services bus")
			if slices.Contains(order, "kafkatopics bus-audit") {
				s.t.Error("the topic was deleted")
			}
			s.expectGone(s.ref("ConfigMap", "topic-bus-clicks"))
			s.expectAllReady(s.kafkaTopic("audit"))
			s.expectNothingLeft([]*unstructured.Unstructured{s.kafkaTopic("audit")})
		}},
	)
}

func TestAKafkaTopicOfNoClusterLivesByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("kafkatopic"))
	cr := s.sample("kafkatopic")
	s.expectBudget(func() { s.create(cr.DeepCopy()); s.expectAllReady(cr) }, cr)
	s.expectRefused(cr, spec(map[string]any{"partitions": 3}), "spec.partitions", "fewer partitions")
	s.expectRefused(cr, spec(map[string]any{"topic": "taps"}), "spec.topic", "immutable")
	s.expectWritten(s.expectBudget(func() {
		s.patch(cr, spec(map[string]any{"partitions": 9}))
		s.expectAllReady(cr)
	}, cr), "configmaps")
	s.expectData("topic-clicks", "partitions", "9")
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}

// TestAKafkaClusterWhoseOperatorIsKilledIsWholeAndGoesWhole: the operator dies in
// creation when it has begun to write topics, and in deletion when those begin to go.
func TestAKafkaClusterWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expectSurvived(s.sample("kafka"), 9, 3, []*unstructured.Unstructured{s.kafkaTopic("audit")}, fixture("kafka"), fixture("kafkatopic"))
	for _, name := range []string{"topic-bus-clicks", "topic-bus-page-views"} {
		s.expectGone(s.ref("ConfigMap", name))
	}
	s.expectAllReady(s.kafkaTopic("audit"))
	s.expectNothingLeft([]*unstructured.Unstructured{s.kafkaTopic("audit")})
}
