package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

func TestAQueueFromItsFirstBrokerToItsDeletion(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("queue"))
	cr := s.sample("queue")
	brokers, settings, topics := s.Ref("StatefulSet", "orders"), s.Ref("ConfigMap", "orders-settings"), s.Ref("ConfigMap", "orders-topics")
	exporter := s.Ref("Deployment", "orders-exporter")
	s.live(
		step{"it is ready with one write for each object", func(s *env) {
			s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, cr)
			got := s.ExpectResourceReady(cr)
			if harness.Field(got, "status", "brokers") != int64(3) || harness.Field(got, "status", "address") != "amqp://orders."+s.Namespace+".svc:5672" {
				s.T.Errorf("the status is %s", harness.Encode(s.T, got.Object["status"]))
			}
		}},
		step{"kubectl scale changes the brokers and nothing else", func(s *env) {
			for _, n := range []string{"5", "1", "3"} {
				s.expectWritten(s.expectBudget(func() {
					s.Kubectl("scale", "queue/orders", "--replicas="+n)
					s.ExpectResourceReady(cr)
				}, cr), "statefulsets")
			}
		}},
		step{"a changed setting rolls the brokers", func(s *env) {
			revision := harness.Field(s.ExpectObject(brokers, "to exist", harness.Exists), "status", "currentRevision")
			s.expectWritten(s.expectBudget(func() {
				s.Patch(cr, harness.Spec(map[string]any{"settings": map[string]any{"log.level": "debug", "heartbeat": "60"}}))
				s.ExpectResourceReady(cr)
			}, cr), "configmaps", "statefulsets")
			s.ExpectData("orders-settings", "broker.conf", "heartbeat=60\nlog.level=debug")
			if after := harness.Field(s.ExpectObject(brokers, "to exist", harness.Exists), "status", "updateRevision"); after == revision {
				s.T.Errorf("the brokers are of the revision %v as before", after)
			}
		}},
		step{"a topic that comes or goes rolls nothing", func(s *env) {
			s.expectWritten(s.expectBudget(func() {
				s.Patch(cr, harness.Spec(map[string]any{"topics": map[string]any{"paid": nil, "sent": map[string]any{"partitions": 2}}}))
				s.ExpectResourceReady(cr)
			}, cr), "configmaps")
			s.ExpectData("orders-topics", "sent", `{"partitions":2,"retention":"7d"}`)
			s.expectNoData("orders-topics", "paid")
		}},
		step{"ten brokers are refused at once", func(s *env) {
			s.expectRefused(cr, harness.Spec(map[string]any{"brokers": 10}), "spec.brokers", "less than or equal to 9")
			s.expectRefused(cr, harness.Spec(map[string]any{"topics": map[string]any{"sent": map[string]any{"partitions": 0}}}), "spec.topics.sent.partitions")
		}},
		step{"the exporter goes and comes with its switch", func(s *env) {
			s.Patch(cr, harness.Spec(map[string]any{"exporter": map[string]any{"enabled": false}}))
			s.ExpectResourceReady(cr)
			s.ExpectGone(exporter)
			s.Patch(cr, harness.Spec(map[string]any{"exporter": map[string]any{"enabled": true}}))
			s.ExpectResourceReady(cr)
			s.ExpectObject(exporter, "to exist", harness.Exists)
		}},
		step{"what somebody changes by hand is as before", func(s *env) {
			s.expectUndone(settings, map[string]any{"data": map[string]any{"broker.conf": "defaced"}})
			s.expectUndone(brokers, harness.Spec(map[string]any{"replicas": 1}))
			s.expectUndone(s.Ref("Service", "orders"), harness.Spec(map[string]any{"selector": map[string]any{"app.kubernetes.io/instance": "other"}}))
			s.expectUndone(exporter, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "mine"}}})
			s.ExpectResourceReady(cr)
		}},
		step{"what somebody deletes by hand is back", func(s *env) {
			for _, u := range []*unstructured.Unstructured{settings, topics, brokers, s.Ref("Service", "orders"), exporter} {
				s.expectRestored(u)
			}
			s.ExpectResourceReady(cr)
		}},
		step{"it goes in the reverse order and leaves nothing", func(s *env) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr})
			s.expectBefore(order, "deployments orders-exporter", "statefulsets orders", "configmaps orders-settings")
			s.expectBefore(order, "jobs orders-prepare", "services orders", "configmaps orders-settings")
		}},
	)
}

func TestAQueueWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.expectSurvived(s.sample("queue"), 4, 2, nil, fixture("queue"))
}
