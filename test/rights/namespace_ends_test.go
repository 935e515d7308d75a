package rights

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// endLimit is how long a namespace may take to end: Kubernetes looks again at one that has something left after 15 seconds at most.
const endLimit = time.Minute

// A namespace is deleted in no order, and its Roles may go before the resources in it. Nobody can create others in it then, so the way out is a
// ClusterRole. The test takes the Roles away before it deletes the namespace, because they do not go first every time.
func TestG3ANamespaceWhoseRolesWentFirstEndsByAClusterRole(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	far := s.Namespace + "-far"
	o := newSeveralIn(t, s, "rolesfirst", []string{far}, s.Namespace, far)
	operator := o.start()
	there, here := o.thing(far), o.thing(s.Namespace)
	s.ExpectResourceReady(there)
	s.ExpectResourceReady(here)
	roles := o.take(t, far, "")
	o.expectAllowed(t, far, false)
	ending := harness.Object("v1", "Namespace", "", far)
	s.Delete(ending)
	took := harness.Within(t, namedWithin, "the log to say what to do", func() error {
		for line := range harness.Lines(operator.Log.From(0), "may not write the status") {
			if harness.ContainsAll(line, []string{far + "/shop", "being deleted", "operetta rbac", "without --namespace"}) {
				return nil
			}
		}
		return harness.ErrNotYet
	})
	t.Logf("the log said it after %s", took.Round(time.Millisecond))
	err := harness.Suite.Admin.Create(t.Context(), roles[0])
	if err == nil || !strings.Contains(err.Error(), "because it is being terminated") {
		t.Errorf("a Role can be created in it: %v", err)
	}
	s.ExpectObject(ending, "to say what keeps it", func(u *unstructured.Unstructured) error {
		if says := fmt.Sprint(harness.Field(u, "status", "conditions")); !strings.Contains(says, "operetta.dev/teardown in 1 resource instances") {
			return fmt.Errorf("it says %s", says)
		}
		return nil
	})

	printed := operetta(t, "rbac", o.p.Dir, "--service-account", s.Namespace+"/operator", "--leader-election-id=")
	for _, u := range objectsIn(t, printed) {
		t.Cleanup(func() { harness.RemoveForGood(t, u) })
	}
	apply(t, printed)
	took = harness.Within(t, endLimit, "the end of the namespace", func() error {
		u, err := harness.GetOrNil(t.Context(), ending)
		if err == nil && u != nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("it was gone %s after the ClusterRole", took.Round(time.Millisecond))
	for _, u := range objectsIn(t, printed) {
		s.Delete(u)
	}
	s.Patch(here, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("settings-shop", "text", "b")
}

// waitingHookBody has a hook before the deletion that waits for a ConfigMap, so that no write of it can be refused.
const waitingHookBody = `
#Spec: {}

inputs: gate: {apiVersion: "v1", kind: "ConfigMap", name: "gate"}

components: settings: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings-\(cr.metadata.name)"}

hooks: beforeDelete: backup: {
	requires: open: inputs.gate.object.data.open == "yes"
	objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "backup-\(cr.metadata.name)"}
}
`

// The hook would wait for ever, and the resource with it would keep the namespace.
func TestANamespaceEndsWhoseResourceHasAHookThatWaits(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	far := s.OtherNamespace()
	p := harness.NewTestPackage(t, "hookwaits", waitingHookBody)
	printed := operetta(t, "rbac", p.Dir, "--service-account", s.Namespace+"/operator", "--leader-election-id=")
	for _, u := range objectsIn(t, printed) {
		t.Cleanup(func() { harness.RemoveForGood(t, u) })
	}
	apply(t, printed)
	s.ActAsAccount(s.Namespace + "/operator")
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	cr := p.Thing(s, "shop", nil)
	cr.SetNamespace(far)
	s.ExpectResourceReady(s.Create(cr))
	ending := harness.Object("v1", "Namespace", "", far)
	s.Delete(ending)
	took := harness.Within(t, endLimit, "the end of the namespace", func() error {
		u, err := harness.GetOrNil(t.Context(), ending)
		if err == nil && u != nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("it was gone after %s", took.Round(time.Millisecond))
}
