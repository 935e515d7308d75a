package e2e

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
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
		metadata: {name: "far", namespace: cr.spec.namespace @untrusted(namespace)}
		data: text: "hello"
	}
}
`

// role returns the identity of the ClusterRole that reaching renders.
func role(namespace string) *unstructured.Unstructured {
	return harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "role-"+namespace)
}

// anyReach lets reaching have its objects in whichever namespace the spec names.
const anyReach = `
reach: {"ClusterRole.rbac.authorization.k8s.io": {}, ConfigMap: namespaces: "*": true}
`

func TestObjectsBeyondTheNamespaceAreKeptByLabelAndGoWithTheResource(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "reaching", reaching+anyReach)
	s.Operate(p.Dir, harness.Everywhere, harness.Alone)
	ns := s.Elsewhere()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{"namespace": ns}))
	s.ExpectAllReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	from := harness.Mark(t)
	s.Delete(cr)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.ExpectGone(u)
	}
	deletes := s.OperatorRequests(from).Verbs("delete")
	if len(deletes) != 2 || deletes[0].Resource != "configmaps" || deletes[1].Resource != "clusterroles" {
		t.Errorf("deleted %s, in the wrong order: %v", deletes, deletes)
	}
}

// expectReachAndRepair expects objects that have no owner reference to be repaired as
// those with one.
func (s *site) expectReachAndRepair(cr, role, far *unstructured.Unstructured) {
	s.T.Helper()
	for _, u := range []*unstructured.Unstructured{role, far} {
		got := s.ExpectThat(u, "to exist", harness.Exists)
		if refs := got.GetOwnerReferences(); len(refs) > 0 || got.GetLabels()["operetta.dev/owner"] == "" {
			s.T.Errorf("%s has owners %v and labels %v", u.GetKind(), refs, got.GetLabels())
		}
	}
	s.Patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.ExpectThat(far, "to be repaired", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "data", "text") != "hello" {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Delete(role)
	s.ExpectThat(role, "to return", harness.Exists)
	s.ExpectAllReady(cr)
}

func TestOperatorOfOneNamespaceKeepsTheObjectsOfItsResourcesInOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "extended", reaching+anyReach)
	start := harness.Mark(t)
	o := s.Operate(p.Dir)
	ns := s.Elsewhere()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{"namespace": ns}))
	s.ExpectAllReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	s.Settle()
	from := harness.Mark(t)
	s.Patch(cr, harness.Annotation("example.com/poke", "1"))
	s.Settle()
	if asked := s.OperatorRequests(from).Only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("the operator asked for something at rest: %s", asked)
	}
	// Nothing of another namespace is read before an object is there.
	outside := s.OperatorRequests(start).About("configmaps").Verbs("list", "watch").Only(func(e controlplane.AuditEvent) bool { return e.Namespace != s.Namespace && e.Namespace != ns })
	if len(outside) > 0 {
		t.Errorf("it reads more namespaces than it has objects in: %v", outside)
	}
	// A new process finds what is elsewhere, and so does one without the package.
	o.Stop()
	s.Delete(cr)
	s.Operate(newSmall(t, "extendedby", bystander).Dir)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.ExpectGone(u)
	}
}

func TestJ3ObjectsBeyondTheNamespaceAreRefusedUnlessThePackageSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// What is certain from the package alone keeps it from being served.
	astray := newSmall(t, "astray", reaching)
	// Its kind is another one for what vet makes up.
	p := newSmall(t, "tethered", strings.NewReplacer(
		", namespace: cr.spec.namespace @untrusted(namespace)", "",
		`"ClusterRole"`, `[if cr.spec.namespace =~ "^sample" {"Role"}, "ClusterRole"][0]`,
	).Replace(reaching))
	o := s.Operate(astray.Dir, p.Dir, harness.Everywhere, harness.Alone)
	o.ExpectLog("waiting for it to be repaired", "astray.cue:", "components.far.objects.far.metadata.namespace", "as in reach: ConfigMap: namespaces: ")
	o.ExpectLog("waiting for it to be repaired", "astray.cue:", "components.role.objects.role", "the object is in no namespace")
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{"namespace": s.Namespace}))
	t.Log(s.ExpectNotReady(cr, "InvalidObject", "ClusterRole.rbac.authorization.k8s.io is cluster-scoped", `reach: "ClusterRole.rbac.authorization.k8s.io": {}`))
	s.Settle()
	for _, o := range []*unstructured.Unstructured{role(s.Namespace), s.Ref("ConfigMap", "far")} {
		if got, err := harness.Read(t.Context(), o); got != nil || err != nil {
			t.Errorf("%s was created (error %v)", o.GetKind(), err)
		}
	}
	s.Delete(cr)
	s.ExpectGone(cr)
}

func TestClusterScopedResourceOwnsWhatItRendersAnywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "global", reaching+"scope: \"Cluster\"\n")
	s.Operate(p.Dir, harness.Everywhere, harness.Alone)
	ns := s.Elsewhere()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := p.Thing(s.Site, s.Namespace, map[string]any{"namespace": ns})
	cr.SetNamespace("")
	s.Create(cr)
	t.Cleanup(func() { _ = harness.World.Admin.Delete(context.WithoutCancel(t.Context()), cr) })
	s.ExpectAllReady(cr)
	for _, u := range []*unstructured.Unstructured{role(ns), far} {
		if refs := s.ExpectThat(u, "to exist", harness.Exists).GetOwnerReferences(); len(refs) != 1 || refs[0].Name != cr.GetName() {
			t.Errorf("%s has owners %v", u.GetKind(), refs)
		}
	}
	s.Patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.ExpectThat(far, "to be repaired", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "data", "text") != "hello" {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Delete(cr)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.ExpectGone(u)
	}
}
