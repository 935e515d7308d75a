package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// near is an object with a reference to its owner, beside those of reaching.
const near = `
components: near: objects: near: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "near"
	data: text: "hello"
}
`

// strip writes an object as kubectl replace does with a file of somebody's own: nothing
// says any more whose it is.
func (s *site) strip(u *unstructured.Unstructured) {
	s.t.Helper()
	got := s.expectThat(u, "to exist", exists)
	bare := object(got.GetAPIVersion(), got.GetKind(), got.GetNamespace(), got.GetName())
	for key, value := range got.Object {
		if key != "metadata" && key != "status" {
			bare.Object[key] = value
		}
	}
	bare.SetResourceVersion(got.GetResourceVersion())
	if err := world.admin.Update(s.t.Context(), bare); err != nil {
		s.t.Fatal(err)
	}
}

func TestE7ObjectThatWasStrippedIsStillItsOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "stripped", reaching+near+"clusterScoped: true\n")
	o := s.operate(p.dir, everywhere, alone)
	ns := s.elsewhere()
	all := []*unstructured.Unstructured{s.ref("ConfigMap", "near"), object("v1", "ConfigMap", ns, "far"), role(ns)}
	cr := s.create(p.thing(s, "shop", map[string]any{"namespace": ns}))
	s.expectAllReady(cr)
	s.settle()
	for _, u := range all {
		from := mark(t)
		s.strip(u)
		within(t, repairLimit, "the marks of "+u.GetName(), func() error {
			got, err := read(t.Context(), u)
			if err == nil && got.GetLabels()["operetta.dev/owner"] == "" {
				err = errNotYet
			}
			return err
		})
		s.expectAllReady(cr)
		s.settle()
		if writes := s.operatorRequests(from).only(func(e controlplane.AuditEvent) bool { return e.Name == u.GetName() && e.Resource != "things" }).verbs("patch", "update", "create", "delete"); len(writes) != 1 {
			t.Errorf("E7: %s was written %d times: %s", u.GetName(), len(writes), writes)
		}
	}

	// While nobody looks it is stripped again, and its resource is deleted.
	o.stop()
	for _, u := range all {
		s.strip(u)
	}
	s.delete(cr)
	s.operate(p.dir, everywhere, alone)
	for _, u := range append(all, cr) {
		s.expectGone(u)
	}
}
