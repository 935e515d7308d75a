package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// nearBody is an object with an owner reference, in addition to those of reaching.
const nearBody = `
components: near: objects: near: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "near"
	data: text: "hello"
}
`

// strip replaces an object like kubectl replace with a manifest of the user, so that nothing on it names
// its owner.
func (s *env) strip(u *unstructured.Unstructured) {
	s.T.Helper()
	got := s.ExpectObject(u, "to exist", harness.Exists)
	bare := harness.Object(got.GetAPIVersion(), got.GetKind(), got.GetNamespace(), got.GetName())
	for key, value := range got.Object {
		if key != "metadata" && key != "status" {
			bare.Object[key] = value
		}
	}
	bare.SetResourceVersion(got.GetResourceVersion())
	if err := harness.Suite.Admin.Update(s.T.Context(), bare); err != nil {
		s.T.Fatal(err)
	}
}

func TestE7ObjectThatWasStrippedIsStillItsOwners(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "stripped", reachingBody+nearBody+anyReach)
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	ns := s.OtherNamespace()
	all := []*unstructured.Unstructured{s.Ref("ConfigMap", "near"), harness.Object("v1", "ConfigMap", ns, "far"), role(ns)}
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"namespace": ns}))
	s.ExpectResourceReady(cr)
	s.WaitUntilIdle()
	for _, u := range all {
		from := harness.MarkAudit(t)
		s.strip(u)
		harness.Within(t, repairLimit, "the marks of "+u.GetName(), func() error {
			got, err := harness.GetOrNil(t.Context(), u)
			if err == nil && got.GetLabels()["operetta.dev/owner"] == "" {
				err = harness.ErrNotYet
			}
			return err
		})
		s.ExpectResourceReady(cr)
		s.WaitUntilIdle()
		if writes := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Name == u.GetName() && e.Resource != "things" }).WithVerbs("patch", "update", "create", "delete"); len(writes) != 1 {
			t.Errorf("E7: %s was written %d times: %s", u.GetName(), len(writes), writes)
		}
	}

	// While no operator runs, the object is stripped again, and its resource is deleted.
	o.Stop()
	for _, u := range all {
		s.strip(u)
	}
	s.Delete(cr)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	// Nothing on the objects proves who owns them, and the inventory alone is no proof, so they are kept
	// and an event says so.
	s.ExpectGone(cr)
	for _, u := range all {
		if got := s.ExpectObject(u, "to stay", harness.Exists); got.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted", u.GetName())
		}
		t.Log(s.ExpectEvent("shop", "Kept", u.GetKind(), u.GetName(), "the marks that prove its owner are missing"))
	}
	for _, u := range all {
		s.Delete(u)
	}
}
