package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAQueueFromItsFirstBrokerToItsDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("queue"))
	cr := s.sample("queue")
	brokers, settings, topics := s.ref("StatefulSet", "orders"), s.ref("ConfigMap", "orders-settings"), s.ref("ConfigMap", "orders-topics")
	exporter := s.ref("Deployment", "orders-exporter")
	s.live(
		step{"it is ready with one write for each object", func(s *site) {
			s.expectBudget(func() { s.create(cr.DeepCopy()); s.expectAllReady(cr) }, cr)
			got := s.expectAllReady(cr)
			if field(got, "status", "brokers") != int64(3) || field(got, "status", "address") != "amqp://orders."+s.namespace+".svc:5672" {
				s.t.Errorf("the status is %s", encode(s.t, got.Object["status"]))
			}
		}},
		step{"kubectl scale changes the brokers and nothing else", func(s *site) {
			for _, n := range []string{"5", "1", "3"} {
				s.expectWritten(s.expectBudget(func() {
					s.kubectl("scale", "queue/orders", "--replicas="+n)
					s.expectAllReady(cr)
				}, cr), "statefulsets")
			}
		}},
		step{"a changed setting rolls the brokers", func(s *site) {
			revision := field(s.expectThat(brokers, "to exist", exists), "status", "currentRevision")
			s.expectWritten(s.expectBudget(func() {
				s.patch(cr, spec(map[string]any{"settings": map[string]any{"log.level": "debug", "heartbeat": "60"}}))
				s.expectAllReady(cr)
			}, cr), "configmaps", "statefulsets")
			s.expectData("orders-settings", "broker.conf", "heartbeat=60\nlog.level=debug")
			if after := field(s.expectThat(brokers, "to exist", exists), "status", "updateRevision"); after == revision {
				s.t.Errorf("the brokers are of the revision %v as before", after)
			}
		}},
		step{"a topic that comes or goes rolls nothing", func(s *site) {
			s.expectWritten(s.expectBudget(func() {
				s.patch(cr, spec(map[string]any{"topics": map[string]any{"paid": nil, "sent": map[string]any{"partitions": 2}}}))
				s.expectAllReady(cr)
			}, cr), "configmaps")
			s.expectData("orders-topics", "sent", `{"partitions":2,"retention":"7d"}`)
			s.expectNoData("orders-topics", "paid")
		}},
		step{"ten brokers are refused at once", func(s *site) {
			s.expectRefused(cr, spec(map[string]any{"brokers": 10}), "spec.brokers", "less than or equal to 9")
			s.expectRefused(cr, spec(map[string]any{"topics": map[string]any{"sent": map[string]any{"partitions": 0}}}), "spec.topics.sent.partitions")
		}},
		step{"the exporter goes and comes with its switch", func(s *site) {
			s.patch(cr, spec(map[string]any{"exporter": map[string]any{"enabled": false}}))
			s.expectAllReady(cr)
			s.expectGone(exporter)
			s.patch(cr, spec(map[string]any{"exporter": map[string]any{"enabled": true}}))
			s.expectAllReady(cr)
			s.expectThat(exporter, "to exist", exists)
		}},
		step{"what somebody changes by hand is as before", func(s *site) {
			s.expectUndone(settings, map[string]any{"data": map[string]any{"broker.conf": "defaced"}})
			s.expectUndone(brokers, spec(map[string]any{"replicas": 1}))
			s.expectUndone(s.ref("Service", "orders"), spec(map[string]any{"selector": map[string]any{"app.kubernetes.io/instance": "other"}}))
			s.expectUndone(exporter, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "mine"}}})
			s.expectAllReady(cr)
		}},
		step{"what somebody deletes by hand is back", func(s *site) {
			for _, u := range []*unstructured.Unstructured{settings, topics, brokers, s.ref("Service", "orders"), exporter} {
				s.expectRestored(u)
			}
			s.expectAllReady(cr)
		}},
		step{"it goes in the reverse order and leaves nothing", func(s *site) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr})
			s.expectBefore(order, "deployments orders-exporter", "statefulsets orders", "configmaps orders-settings")
			s.expectBefore(order, "jobs orders-prepare", "services orders", "configmaps orders-settings")
		}},
	)
}

func TestAQueueWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expectSurvived(s.sample("queue"), 4, 2, nil, fixture("queue"))
}
