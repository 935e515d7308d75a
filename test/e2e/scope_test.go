package e2e

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

const reachingBody = `
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

// anyReach allows objects of the package reaching in any namespace that the spec names.
const anyReach = `
reach: {"ClusterRole.rbac.authorization.k8s.io": {}, ConfigMap: namespaces: "*": true}
`

func TestObjectsBeyondTheNamespaceAreKeptByLabelAndGoWithTheResource(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "reaching", reachingBody+anyReach)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	ns := s.OtherNamespace()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"namespace": ns}))
	s.ExpectResourceReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	from := harness.MarkAudit(t)
	s.Delete(cr)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.ExpectGone(u)
	}
	deletes := s.OperatorRequests(from).WithVerbs("delete")
	if len(deletes) != 2 || deletes[0].Resource != "configmaps" || deletes[1].Resource != "clusterroles" {
		t.Errorf("deleted %s, in the wrong order: %v", deletes, deletes)
	}
}

// expectReachAndRepair expects the operator to repair objects without an owner reference like those
// with one.
func (s *env) expectReachAndRepair(cr, role, far *unstructured.Unstructured) {
	s.T.Helper()
	for _, u := range []*unstructured.Unstructured{role, far} {
		got := s.ExpectObject(u, "to exist", harness.Exists)
		if refs := got.GetOwnerReferences(); len(refs) > 0 || got.GetLabels()["operetta.dev/owner"] == "" {
			s.T.Errorf("%s has owners %v and labels %v", u.GetKind(), refs, got.GetLabels())
		}
	}
	s.Patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.ExpectObject(far, "to be repaired", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "data", "text") != "hello" {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Delete(role)
	s.ExpectObject(role, "to return", harness.Exists)
	s.ExpectResourceReady(cr)
}

func TestOperatorOfOneNamespaceKeepsTheObjectsOfItsResourcesInOthers(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "extended", reachingBody+anyReach)
	start := harness.MarkAudit(t)
	o := s.StartOperator(p.Dir)
	ns := s.OtherNamespace()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"namespace": ns}))
	s.ExpectResourceReady(cr)
	s.expectReachAndRepair(cr, role(ns), far)
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	s.Patch(cr, harness.Annotation("example.com/poke", "1"))
	s.WaitUntilIdle()
	if asked := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("the operator asked for something at rest: %s", asked)
	}
	// The operator reads nothing in another namespace before an object exists there.
	outside := s.OperatorRequests(start).OfResource("configmaps").WithVerbs("list", "watch").Filter(func(e controlplane.AuditEvent) bool { return e.Namespace != s.Namespace && e.Namespace != ns })
	if len(outside) > 0 {
		t.Errorf("it reads more namespaces than it has objects in: %v", outside)
	}
	// A new process finds the objects in other namespaces, and so does a process without the package.
	o.Stop()
	s.Delete(cr)
	s.StartOperator(newTestPackage(t, "extendedby", bystanderBody).Dir)
	for _, u := range []*unstructured.Unstructured{cr, far, role(ns)} {
		s.ExpectGone(u)
	}
}

func TestJ3ObjectsBeyondTheNamespaceAreRefusedUnlessThePackageSaysSo(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	// vet refuses a package that certainly reaches too far, so it is not served.
	astray := newTestPackage(t, "astray", reachingBody)
	// The samples of vet have another kind, so vet accepts this package.
	p := newTestPackage(t, "tethered", strings.NewReplacer(
		", namespace: cr.spec.namespace @untrusted(namespace)", "",
		`"ClusterRole"`, `[if cr.spec.namespace =~ "^sample" {"Role"}, "ClusterRole"][0]`,
	).Replace(reachingBody))
	o := s.StartOperator(astray.Dir, p.Dir, harness.Everywhere, harness.Alone)
	o.ExpectLog("waiting for it to be repaired", "astray.cue:", "components.far.objects.far.metadata.namespace", "as in reach: ConfigMap: namespaces: ")
	o.ExpectLog("waiting for it to be repaired", "astray.cue:", "components.role.objects.role", "the object is cluster-scoped")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"namespace": s.Namespace}))
	t.Log(s.ExpectNotReady(cr, "InvalidObject", "ClusterRole.rbac.authorization.k8s.io is cluster-scoped", `reach: "ClusterRole.rbac.authorization.k8s.io": {}`))
	s.WaitUntilIdle()
	for _, o := range []*unstructured.Unstructured{role(s.Namespace), s.Ref("ConfigMap", "far")} {
		if got, err := harness.GetOrNil(t.Context(), o); got != nil || err != nil {
			t.Errorf("%s was created (error %v)", o.GetKind(), err)
		}
	}
	s.Delete(cr)
	s.ExpectGone(cr)
}

func TestClusterScopedResourceOwnsWhatItRendersAnywhere(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "global", reachingBody+"scope: \"Cluster\"\n")
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	ns := s.OtherNamespace()
	far := harness.Object("v1", "ConfigMap", ns, "far")
	cr := p.Thing(s.Env, s.Namespace, map[string]any{"namespace": ns})
	cr.SetNamespace("")
	s.Create(cr)
	t.Cleanup(func() { _ = harness.Suite.Admin.Delete(context.WithoutCancel(t.Context()), cr) })
	s.ExpectResourceReady(cr)
	for _, u := range []*unstructured.Unstructured{role(ns), far} {
		if refs := s.ExpectObject(u, "to exist", harness.Exists).GetOwnerReferences(); len(refs) != 1 || refs[0].Name != cr.GetName() {
			t.Errorf("%s has owners %v", u.GetKind(), refs)
		}
	}
	s.Patch(far, map[string]any{"data": map[string]any{"text": "bye"}})
	s.ExpectObject(far, "to be repaired", func(u *unstructured.Unstructured) error {
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
