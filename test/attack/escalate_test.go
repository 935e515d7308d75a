package attack

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// escalations are packages that by mistake let a tenant choose what only the operator may do, and what
// a resource would gain by it.
var escalations = map[string]struct {
	pkg, body string
	spec      map[string]any
	// path and allows are parts of the message with which the operator refuses to serve the package.
	path, allows string
}{
	"a kind": {"esckind", `
#Spec: {kind: string, name: string}
components: any: objects: o: {
	apiVersion: "rbac.authorization.k8s.io/v1"
	kind:       cr.spec.kind
	metadata: name: "mine"
	roleRef: {apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin"}
	subjects: [{apiGroup: "rbac.authorization.k8s.io", kind: "User", name: cr.spec.name}]
}`, map[string]any{"kind": "RoleBinding", "name": "mallory"}, "components.any.objects.o.kind", "objects of any kind"},
	"a type of Secret": {"escsecret", `
#Spec: type: string | *"Opaque"
components: any: objects: o: {
	apiVersion: "v1"
	kind:       "Secret"
	metadata: {name: "mine", annotations: "kubernetes.io/service-account.name": "default"}
	type: cr.spec.type
}`, map[string]any{"type": "kubernetes.io/service-account-token"}, "components.any.objects.o.type", "token of any ServiceAccount"},
	"a whole object": {"escobject", `
#Spec: object: {apiVersion: string, kind: string, metadata: name: string, ...} @crd(preserveUnknownFields)
components: any: objects: o: cr.spec.object`, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "mine"},
	}}, "components.any.objects.o", "objects of any kind"},
	"an account by way of a template": {"escaccount", `
#Spec: account: string
_pod: {#as: string, spec: {serviceAccountName: #as, containers: [{name: "main", image: "main:1"}]}}
components: any: objects: o: _pod & {#as: cr.spec.account, apiVersion: "v1", kind: "Pod", metadata: name: "mine"}`,
		map[string]any{"account": "admin-sa"}, "components.any.objects.o.spec.serviceAccountName", "as any ServiceAccount"},
	"a folder of the node": {"escnode", `
#Spec: volumes: [...{name: string, hostPath?: path: string}]
components: any: objects: o: {apiVersion: "v1", kind: "Pod", metadata: name: "mine", spec: {containers: [{name: "main", image: "main:1"}], volumes: cr.spec.volumes}}`,
		map[string]any{"volumes": []any{map[string]any{"name": "a", "hostPath": map[string]any{"path": "/"}}}}, "components.any.objects.o.spec.volumes", "the files of a node"},
	"a namespace among any": {"escplace", `
#Spec: place: string
reach: Secret: namespaces: "*": true
components: any: objects: o: {apiVersion: "v1", kind: "Secret", metadata: {name: "mine", namespace: cr.spec.place}}`,
		map[string]any{"place": "kube-system"}, "components.any.objects.o.metadata.namespace", "in any namespace"},
}

func TestAttackByAPackageThatTakesMoreFromTheSpecThanItsAuthorMeant(t *testing.T) {
	t.Parallel()
	for name, row := range escalations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			p := harness.NewTestPackage(t, row.pkg, row.body)
			o := s.StartOperator(p.Dir, harness.Alone)
			o.ExpectLog("waiting for it to be repaired", row.pkg+".cue:", row.path, row.allows, "@untrusted(")

			// The package is served once the author allows it explicitly, and then it has this effect.
			if name != "a whole object" {
				return
			}
			harness.WriteFile(t, p.Dir+"/"+row.pkg+".cue", strings.ReplaceAll(harness.TestPackageHead+row.body+" @untrusted(kind)", "NAME", row.pkg))
			o.ExpectLog("package loaded", row.pkg)
			mallory := s.Tenant("mallory", s.Namespace, things(p))
			cr := mallory.Create(p.Thing(s, "shop", row.spec))
			s.ExpectResourceReady(cr)
			s.Get("Secret", "mine")
		})
	}
}

// beyondBody has objects in namespaces that the spec chooses, one of which the package may use. vet
// does not notice it, because none of its generated specs has a wrong namespace, so the package is
// served.
const beyondBody = `
#Spec: place: string
reach: ConfigMap: namespaces: "NAME-shared": true
components: {
	if cr.spec.place !~ "^sample" {
		cluster: objects: o: {
			apiVersion: "rbac.authorization.k8s.io/v1"
			kind:       "ClusterRole"
			metadata: name: "NAME-mine"
		}
	}
	far: objects: o: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		// vet cannot see that this text is another namespace.
		metadata: {name: "NAME-mine", namespace: [if cr.spec.place =~ "^sample" {"NAME-shared"}, cr.spec.place][0]}
	}
}
`

func TestAttackOnNamespacesThatThePackageDoesNotName(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "beyond", beyondBody)
	s.Create(harness.Object("v1", "Namespace", "", p.Name+"-shared"))
	s.StartOperator(p.Dir, harness.Alone)
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	cr := mallory.Create(p.Thing(s, "shop", map[string]any{"place": "kube-system"}))
	s.ExpectNotReady(cr, "InvalidObject", "ClusterRole.rbac.authorization.k8s.io is cluster-scoped")
	s.WaitUntilIdle()
	why, _ := harness.Component(s.ExpectObject(cr, "to exist", harness.Exists), "far")["message"].(string)
	if want := `it is in namespace kube-system, and its owner is in namespace ` + s.Namespace + `; reach: ConfigMap: namespaces: "kube-system": true`; !strings.Contains(why, want) {
		t.Errorf("it says %q, want %q", why, want)
	}
	for _, u := range []*unstructured.Unstructured{harness.Object("v1", "ConfigMap", "kube-system", "beyond-mine"), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "beyond-mine")} {
		if got, err := harness.GetOrNil(t.Context(), u); got != nil || err != nil {
			t.Errorf("%s %s was created (error %v)", u.GetKind(), u.GetName(), err)
		}
	}
	// A namespace that the package names is allowed, and one with another prefix is not.
	if err := mallory.Patch(cr, harness.Spec(map[string]any{"place": p.Name + "-shared"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectObject(harness.Object("v1", "ConfigMap", p.Name+"-shared", "beyond-mine"), "to exist", harness.Exists)
}
