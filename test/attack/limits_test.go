package attack

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// newUnboundedPackage writes a package without limits: only the resource decides how much it renders.
func newUnboundedPackage(t *testing.T, name, more string) *harness.TestPackage {
	t.Helper()
	p := harness.NewTestPackage(t, name, more)
	harness.WriteFile(t, filepath.Join(p.Dir, "spender.cue"), "package "+name+unboundedBody)
	return p
}

const unboundedBody = `

import (
	"list"
	"strings"
	"struct"
)

#Spec: {
	n:     int & >=0 | *0
	env?: {[string]: string} & struct.MaxFields(100_000)
	text:  *"" | strings.MaxRunes(2_000_000)
	times: int & >=0 | *0
}

components: many: objects: {for i in list.Range(0, cr.spec.n, 1) {"c\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-\(i)"}}}
components: env: objects: {if cr.spec.env != _|_ {map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-env", data: cr.spec.env}}}
components: large: objects: {if cr.spec.times > 0 {deployment: {
	apiVersion: "apps/v1"
	kind:       "Deployment"
	metadata: name: "\(cr.metadata.name)-large"
	spec: {
		replicas: 0
		selector: matchLabels: app: "large"
		template: {
			metadata: labels: app: "large"
			spec: containers: [{name: "main", image: "main:1", env: [for i in list.Range(0, cr.spec.times, 1) {name: "E\(i)", value: cr.spec.text}]}]
		}
	}
}}}
components: greeting: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: text: "hello"}
`

// keys returns a map of n keys.
func keys(n int) map[string]any {
	out := make(map[string]any, n)
	for i := range n {
		out[fmt.Sprintf("k%05d", i)] = "v"
	}
	return out
}

// limitedEvaluationText is part of the log message of each evaluation that exceeds a limit.
const limitedEvaluationText = "an evaluation was beyond its limit"

// countLimitedEvaluations returns how many evaluations of an operator have exceeded a limit.
func countLimitedEvaluations(o *harness.Operator) int {
	return strings.Count(o.Log.From(0), limitedEvaluationText)
}

// expectLimit waits until a resource is Stalled because of a limit.
func expectLimit(s *harness.Env, u *unstructured.Unstructured, parts ...string) {
	s.T.Helper()
	s.ExpectNotReady(u, "EvaluationLimit", parts...)
}

// configMapsOf returns the ConfigMaps that an operator has created for a resource.
func configMapsOf(s *harness.Env, name string) []string {
	var out []string
	for _, u := range s.List("v1", "ConfigMap") {
		if strings.HasPrefix(u.GetName(), name) && u.GetLabels()["operetta.dev/owner"] != "" {
			out = append(out, u.GetName())
		}
	}
	return out
}

// createLarge creates a resource that takes an API server long. On a busy machine it answers that it has not ended in time, whether
// it goes on or not.
func createLarge(x *harness.Tenant, u *unstructured.Unstructured) *unstructured.Unstructured {
	x.T.Helper()
	machine.Eventually(x.T, "the creation of "+u.GetName(), func() bool {
		err := x.Client.Create(x.T.Context(), u)
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsTimeout(err) {
			x.T.Fatalf("%s: %v", x.User, err)
		}
		return !apierrors.IsTimeout(err)
	})
	return u
}

// One resource with 60,000 keys cost 40 s and half a GiB for each evaluation, and blocked all workers
// of its kind.
func TestAttackKeysOfOneResourceCostTheOthersNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := newUnboundedPackage(t, "manykeys", "")
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))
	bob := s.Tenant("bob", s.Namespace, things(p))

	victim := bob.Create(p.Thing(s, "bob", nil))
	s.ExpectResourceReady(victim)
	var bombs []*unstructured.Unstructured
	for i := range 6 {
		bombs = append(bombs, createLarge(alice, p.Thing(s, fmt.Sprint("bomb-", i), map[string]any{"env": keys(60_000)})))
	}
	began := time.Now()
	for _, bomb := range bombs {
		expectLimit(s, bomb, "60", "fields and list elements, most of them in cr.spec.env", "may have 10000")
	}
	s.ExpectResourceReady(bob.Create(p.Thing(s, "bob-again", nil)))
	t.Logf("all was said after %s", harness.Elapsed(began))
	if got := countLimitedEvaluations(o); got != 0 {
		t.Errorf("they were evaluated %d times", got)
	}
	for _, bomb := range bombs {
		s.Delete(bomb)
		s.ExpectGone(bomb)
	}
}

// The number of labels is not limited, and 60,000 of them cost 15 s in a package of 20 lines that does
// not read them.
func TestAttackLabelsThatNobodyReadsCostNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "manylabels", helloBody)
	q := harness.NewTestPackage(t, "copiedlabels", helloBody+"components: greeting: objects: map: metadata: labels: cr.metadata.labels\n")
	o := s.StartOperator(p.Dir, q.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p), things(q))

	labelled := func(p *harness.TestPackage) *unstructured.Unstructured {
		u := p.Thing(s, p.Name, map[string]any{"text": "hello"})
		u.Object["metadata"].(map[string]any)["labels"] = keys(60_000)
		return createLarge(alice, u)
	}
	unread, read := labelled(p), labelled(q)
	began := time.Now()
	s.ExpectResourceReady(unread)
	expectLimit(s, read, "most of them in cr.metadata.labels", "may have 10000")
	t.Logf("all was said after %s", harness.Elapsed(began))
	if got := countLimitedEvaluations(o); got != 0 {
		t.Errorf("they were evaluated %d times in vain", got)
	}
}

// A spec of 60 bytes made the operator create 15,000 ConfigMaps for a user who may create none, and the
// operator retried forever to write the status with all of them.
func TestAttackObjectsAreCountedBeforeTheFirstIsWritten(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := newUnboundedPackage(t, "manyobjects", "")
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))

	bomb := alice.Create(p.Thing(s, "bomb", map[string]any{"n": int64(3)}))
	s.ExpectResourceReady(bomb)
	had := configMapsOf(s, "bomb")
	mark := harness.MarkAudit(t)
	if err := alice.Patch(bomb, harness.Spec(map[string]any{"n": 15_000})); err != nil {
		t.Fatal(err)
	}
	expectLimit(s, bomb, "renders at least 15000 objects", "component many", "500 are the limit")
	for i := range 5 { // whatever happens to it
		if err := alice.Patch(bomb, harness.Annotation("example.com/poke", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		s.WaitUntilIdle()
	}
	s.ExpectResourceReady(alice.Create(p.Thing(s, "other", map[string]any{"n": int64(3)})))
	if got := countLimitedEvaluations(o); got != 1 {
		t.Errorf("it was evaluated %d times in vain, want once", got)
	}
	if got := configMapsOf(s, "bomb"); !slices.Equal(got, had) {
		t.Errorf("there are %d ConfigMaps, want the %d of before", len(got), len(had))
	}
	about := s.OperatorRequests(mark).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Name == "bomb" })
	if len(about) > 2 {
		t.Errorf("%d writes of the resource:\n%s", len(about), about)
	}

	o.Kill()
	o = s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	if err := alice.Patch(bomb, harness.Annotation("example.com/poke", "after the restart")); err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(alice.Create(p.Thing(s, "another", map[string]any{"n": int64(3)})))
	s.WaitUntilIdle()
	expectLimit(s, bomb, "500 are the limit")
	if got := countLimitedEvaluations(o); got != 0 {
		t.Errorf("after a restart it was evaluated %d times in vain", got)
	}
	if err := alice.Patch(bomb, harness.Annotation("operetta.dev/reconcile-at", "now")); err != nil {
		t.Fatal(err)
	}
	o.ExpectLog(limitedEvaluationText)

	if err := alice.Patch(bomb, harness.Spec(map[string]any{"n": 2})); err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(bomb)
	if got := configMapsOf(s, "bomb"); len(got) != 3 {
		t.Errorf("there are %v, want 3", got)
	}
}

// A resource that is as large as the API server can store leaves no room for its status, which the
// operator retried forever.
func TestAttackAResourceWithoutRoomForAStatusWritesNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := newUnboundedPackage(t, "noroom", "limits: bytes: 1_572_864\n")
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))

	mark := harness.MarkAudit(t)
	bomb := alice.Create(p.Thing(s, "bomb", map[string]any{"n": int64(400), "text": strings.Repeat("x", 1_530_000)}))
	s.ExpectNotReady(bomb, "StatusTooLarge", "the API server refuses the status")
	for i := range 5 {
		if err := alice.Patch(bomb, harness.Annotation("example.com/poke", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		s.WaitUntilIdle()
	}
	if got := configMapsOf(s, "bomb"); len(got) != 0 {
		t.Errorf("there are %d ConfigMaps, and nobody would know of them", len(got))
	}
	about := s.OperatorRequests(mark).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Name == "bomb" })
	if len(about) > 4 {
		t.Errorf("%d writes of the resource:\n%s", len(about), about)
	}
	if err := alice.Patch(bomb, harness.Spec(map[string]any{"text": ""})); err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(bomb)
}

// An object that etcd rejects as too large was treated as a temporary error, and was rendered and sent
// again forever.
func TestAttackAnObjectThatIsTooLargeIsRejected(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := newUnboundedPackage(t, "toolarge", "limits: bytes: 1_572_864\n")
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))

	for name, times := range map[string]int64{"etcd": 2, "the client of etcd": 3, "the api server": 4} {
		name = harness.Unlikely.ReplaceAllString(name, "-")
		mark := harness.MarkAudit(t)
		bomb := alice.Create(p.Thing(s, name, map[string]any{"times": times, "text": strings.Repeat("x", 900_000)}))
		s.ExpectNotReady(bomb, "ObjectRejected", "Deployment", "which is too large")
		for i := range 3 {
			if err := alice.Patch(bomb, harness.Annotation("example.com/poke", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
			s.WaitUntilIdle()
		}
		about := s.OperatorRequests(mark).Writes().OfResource("deployments").Filter(func(e controlplane.AuditEvent) bool { return e.Name == name+"-large" })
		if len(about) > 1 {
			t.Errorf("%s: the object was sent %d times:\n%s", name, len(about), about)
		}
	}
}
