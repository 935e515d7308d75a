package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// recreate is a policy that makes the operator replace the Job of the package queue instead of changing
// it.
const recreate = "\tpolicy: job: apply: \"recreateOnImmutable\"\n"

// longest is the maximum length of a message for a person.
const longest = 700

func TestAJobThatCannotBeChangedIsRefusedOnceWithWhatToDo(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := copyFolder(t, fixture("queue"), nil)
	s.StartOperator(p.dir)
	cr := s.sample("queue")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.Patch(cr, harness.Spec(map[string]any{"image": "broker:4.3"}))
	message := s.ExpectNotReady(cr, "ObjectRejected", "prepare: ", "Job "+s.Namespace+"/orders-prepare", "immutable", "brokers.cue:")
	t.Logf("%d characters: %s", len(message), message)
	if len(message) > longest {
		t.Errorf("the message has %d characters", len(message))
	}
	if remedies := []string{"recreateOnImmutable", "createOnly", "hook"}; !harness.ContainsAll(message, remedies) {
		t.Errorf("the message names none of %q", remedies)
	}
	if c := harness.Condition(s.ExpectObject(cr, "to exist", harness.Exists), "Stalled"); c["status"] != "True" {
		t.Errorf("Stalled is %v", c)
	}
	// The brokers are not affected.
	s.ExpectObject(s.Ref("StatefulSet", "orders"), "to be of the new image", ofImage("broker:4.3"))
	s.ExpectObject(s.Ref("StatefulSet", "orders"), "to be rolled out", isRolled)
	s.expectFewRequests()

	// The remedy in the message works.
	p.edit("brokers.cue", "\tobjects: job:", recreate+"\tobjects: job:")
	s.ExpectResourceReady(cr)
	s.ExpectObject(s.Ref("Job", "orders-prepare"), "to be of the new image", ofImage("broker:4.3"))
}

func TestATopicThatIsNoKeyIsRefusedOnceAndNamed(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("queue"))
	cr := s.sample("queue")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.Patch(cr, harness.Spec(map[string]any{"brokers": 4, "topics": map[string]any{"a b/c": map[string]any{}}}))
	t.Log(s.ExpectNotReady(cr, "ObjectRejected", "topics: ", "ConfigMap "+s.Namespace+"/orders-topics", "a b/c", fixtures+"/queue/config.cue:"))
	s.ExpectObject(s.Ref("StatefulSet", "orders"), "to have four brokers", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "availableReplicas") != int64(4) {
			return harness.ErrNotYet
		}
		return nil
	})
	s.expectFewRequests()
	s.Patch(cr, harness.Spec(map[string]any{"topics": map[string]any{"a b/c": nil, "abc": map[string]any{}}}))
	s.ExpectResourceReady(cr)
}

// TestF31ATopicWithFewerPartitionsIsRefusedOnceInItsOwnWords: the schema of the topic, not that of the
// cluster, says that the number cannot be reduced.
func TestF31ATopicWithFewerPartitionsIsRefusedOnceInItsOwnWords(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	topics := map[string]any{"topics": []any{map[string]any{"name": "clicks", "partitions": 2}, map[string]any{"name": "orders"}}}
	s.Patch(cr, harness.Spec(topics))
	t.Log(s.ExpectNotReady(cr, "ObjectRejected", "topic-clicks: ", "KafkaTopic "+s.Namespace+"/bus-clicks",
		"a topic cannot have fewer partitions than it had", fixtures+"/kafka/topics.cue:"))
	s.ExpectResourceReady(s.kafkaTopic("orders"))
	s.ExpectGone(s.kafkaTopic("page-views"))
	s.expectFewRequests()
	if got := harness.Field(s.ExpectResourceReady(s.kafkaTopic("clicks")), "spec", "partitions"); got != int64(6) {
		t.Errorf("it has %v partitions", got)
	}
	topics["topics"].([]any)[0].(map[string]any)["partitions"] = 8
	s.Patch(cr, harness.Spec(topics))
	s.ExpectResourceReady(cr)
}

// TestAChangeByHandThatCannotBeUndoneIsNamedAndLeftAlone: partitions cannot be removed.
func TestAChangeByHandThatCannotBeUndoneIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(fixture("kafka"), fixture("kafkatopic"))
	cr := s.sample("kafka")
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.Patch(s.kafkaTopic("clicks"), harness.Spec(map[string]any{"partitions": 20}))
	t.Log(s.ExpectNotReady(cr, "ObjectRejected", "topic-clicks: ", "a topic cannot have fewer partitions than it had", fixtures+"/kafka/topics.cue:"))
	s.ExpectResourceReady(s.kafkaTopic("clicks"))
	s.expectFewRequests()
	s.Patch(cr, harness.Spec(map[string]any{"topics": []any{map[string]any{"name": "clicks", "partitions": 20}}}))
	s.ExpectResourceReady(cr)
}

func TestADatabaseThatAPlatformTakesBackIsRefusedOnceInItsOwnWords(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(platformPackages()...)
	cr := s.platform()
	cr.Object["spec"].(map[string]any)["apps"] = map[string]any{"cart": map[string]any{"image": "cart:1"}}
	cr.Object["spec"].(map[string]any)["database"] = map[string]any{"version": int64(17), "replicas": int64(0)}
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	cart := s.partsOf(cr, "cart")[2]
	s.Patch(cr, harness.Spec(map[string]any{"database": map[string]any{"version": 16}, "apps": map[string]any{"cart": map[string]any{"image": "cart:2"}}}))
	t.Log(s.ExpectNotReady(cr, "ObjectRejected", "database: ", "Postgres "+s.Namespace+"/"+cr.GetName(),
		"the data of a major version cannot be read by an older one", fixtures+"/platform/parts.cue:"))
	if got := harness.Field(s.ExpectResourceReady(cart), "spec", "image"); got != "cart:1" {
		t.Errorf("the application was changed to %v, though what it depends on was refused", got)
	}
	s.expectFewRequests()
	s.Patch(cr, harness.Spec(map[string]any{"database": map[string]any{"version": 17}}))
	s.ExpectResourceReady(cr)
	if got := harness.Field(s.ExpectResourceReady(cart), "spec", "image"); got != "cart:2" {
		t.Errorf("the application is of %v", got)
	}
}
