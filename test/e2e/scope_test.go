package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const reaching = `
#Spec: namespace: string

components: role: objects: role: {
	apiVersion: "rbac.authorization.k8s.io/v1"
	kind:       "ClusterRole"
	metadata: name: "role-\(cr.spec.namespace)"
	rules: [{apiGroups: [""], resources: ["pods"], verbs: ["get"]}]
}
components: far: {
	dependsOn: role: {}
	objects: far: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: {name: "far", namespace: cr.spec.namespace}
		data: text: "hello"
	}
}
`

// elsewhere makes a namespace besides the site's.
func (s *site) elsewhere() string {
	s.t.Helper()
	name := s.namespace + "-far"
	s.create(object("v1", "Namespace", "", name))
	return name
}

// role returns the identity of the ClusterRole that reaching renders.
func role(namespace string) *unstructured.Unstructured {
	return object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "role-"+namespace)
}

func TestObjectsBeyondTheNamespaceAreKeptByLabelAndGoWithTheResource(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "reaching", reaching+"clusterScoped: true\n")
	s.operate(p.dir, "--namespace=")
	ns := s.elsewhere()
	far := object("v1", "ConfigMap", ns, "far")
	cr := s.create(p.thing(s, "shop", map[string]any{"namespace": ns}))
	s.expectAllReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	from := mark(t)
	s.delete(cr)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.expectGone(u)
	}
	deletes := s.operatorRequests(from).verbs("delete")
	if len(deletes) != 2 || deletes[0].Resource != "configmaps" || deletes[1].Resource != "clusterroles" {
		t.Errorf("deleted %s, in the wrong order: %v", deletes, deletes)
	}
}

// expectReachAndRepair expects objects that have no owner reference to be repaired as
// those with one.
func (s *site) expectReachAndRepair(cr, role, far *unstructured.Unstructured) {
	s.t.Helper()
	for _, u := range []*unstructured.Unstructured{role, far} {
		got := s.expectThat(u, "to exist", exists)
		if refs := got.GetOwnerReferences(); len(refs) > 0 || got.GetLabels()["operetta.dev/owner"] == "" {
			s.t.Errorf("%s has owners %v and labels %v", u.GetKind(), refs, got.GetLabels())
		}
	}
	s.patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.expectThat(far, "to be repaired", func(u *unstructured.Unstructured) error {
		if field(u, "data", "text") != "hello" {
			return errNotYet
		}
		return nil
	})
	s.delete(role)
	s.expectThat(role, "to return", exists)
	s.expectAllReady(cr)
}

func TestJ3ObjectsBeyondTheNamespaceAreRefusedUnlessThePackageSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// What is certain from the package alone ends the start.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, world.operetta, "run", "--kubeconfig", s.kubeconfig, newSmall(t, "astray", reaching).dir).CombinedOutput()
	if err == nil || !containsAll(string(out), []string{"astray.cue:", "components.far.objects.far.metadata.namespace", "clusterScoped: true"}) {
		t.Errorf("the package was not refused (error %v): %s", err, out)
	}
	// Whether a kind is cluster-scoped, only the cluster knows.
	p := newSmall(t, "tethered", strings.Replace(reaching, ", namespace: cr.spec.namespace", "", 1))
	s.operate(p.dir, "--namespace=")
	cr := s.create(p.thing(s, "shop", map[string]any{"namespace": s.namespace}))
	t.Log(s.expectNotReady(cr, "InvalidObject", "ClusterRole is cluster-scoped", "clusterScoped: true"))
	s.settle()
	for _, o := range []*unstructured.Unstructured{role(s.namespace), s.ref("ConfigMap", "far")} {
		if got, err := read(t.Context(), o); got != nil || err != nil {
			t.Errorf("%s was created (error %v)", o.GetKind(), err)
		}
	}
	s.delete(cr)
	s.expectGone(cr)
}

func TestClusterScopedResourceOwnsWhatItRendersAnywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "global", reaching+"scope: \"Cluster\"\n")
	s.operate(p.dir, "--namespace=")
	ns := s.elsewhere()
	far := object("v1", "ConfigMap", ns, "far")
	cr := p.thing(s, s.namespace, map[string]any{"namespace": ns})
	cr.SetNamespace("")
	s.create(cr)
	t.Cleanup(func() { _ = world.admin.Delete(context.WithoutCancel(t.Context()), cr) })
	s.expectAllReady(cr)
	for _, u := range []*unstructured.Unstructured{role(ns), far} {
		if refs := s.expectThat(u, "to exist", exists).GetOwnerReferences(); len(refs) != 1 || refs[0].Name != cr.GetName() {
			t.Errorf("%s has owners %v", u.GetKind(), refs)
		}
	}
	s.patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.expectThat(far, "to be repaired", func(u *unstructured.Unstructured) error {
		if field(u, "data", "text") != "hello" {
			return errNotYet
		}
		return nil
	})
	s.delete(cr)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.expectGone(u)
	}
}
