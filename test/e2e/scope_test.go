package e2e

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
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

// everywhere makes an operator serve all namespaces, and alone leaves the resources of
// other tests there to their own operators.
const (
	everywhere = "--namespace="
	alone      = "--strays=leave"
)

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
	s.operate(p.dir, everywhere, alone)
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

func TestOperatorOfOneNamespaceKeepsTheObjectsOfItsResourcesInOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "extended", reaching+"clusterScoped: true\n")
	start := mark(t)
	o := s.operate(p.dir)
	ns := s.elsewhere()
	far := object("v1", "ConfigMap", ns, "far")
	cr := s.create(p.thing(s, "shop", map[string]any{"namespace": ns}))
	s.expectAllReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	s.settle()
	from := mark(t)
	s.patch(cr, annotation("example.com/poke", "1"))
	s.settle()
	if asked := s.operatorRequests(from).only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("the operator asked for something at rest: %s", asked)
	}
	// Nothing of another namespace is read before an object is there.
	outside := s.operatorRequests(start).about("configmaps").verbs("list", "watch").only(func(e controlplane.AuditEvent) bool { return e.Namespace != s.namespace && e.Namespace != ns })
	if len(outside) > 0 {
		t.Errorf("it reads more namespaces than it has objects in: %v", outside)
	}
	// A new process finds what is elsewhere, and so does one without the package.
	o.stop()
	s.delete(cr)
	s.operate(newSmall(t, "extendedby", bystander).dir)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.expectGone(u)
	}
}

func TestJ3ObjectsBeyondTheNamespaceAreRefusedUnlessThePackageSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// What is certain from the package alone keeps it from being served.
	astray := newSmall(t, "astray", reaching)
	// Whether a kind is cluster-scoped, only the cluster knows.
	p := newSmall(t, "tethered", strings.Replace(reaching, ", namespace: cr.spec.namespace", "", 1))
	o := s.operate(astray.dir, p.dir, everywhere, alone)
	o.expectLog("waiting for it to be mended", "astray.cue:", "components.far.objects.far.metadata.namespace", "clusterScoped: true")
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
	s.operate(p.dir, everywhere, alone)
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
