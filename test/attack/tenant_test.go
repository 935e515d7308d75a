package attack

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helloBody is a package with one ConfigMap.
const helloBody = `
#Spec: text: string | *"hello"

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: text: cr.spec.text
}
`

// things returns a rule that allows everything with the resources of a package, including their status,
// as a role with a wildcard does.
func things(p *harness.TestPackage) map[string]any {
	return harness.Rule(p.Name+".example.com", harness.AllVerbs, "*")
}

// configMaps returns a rule that allows everything with ConfigMaps.
func configMaps() map[string]any { return harness.Rule("", harness.AllVerbs, "configmaps") }

// The attacks rely on TestTenantsHaveNoRightsButTheirOwn: if a tenant were an administrator, they would
// prove nothing.
func TestTenantsHaveNoRightsButTheirOwn(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "rightless", helloBody)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	carol := s.Tenant("carol", far, configMaps())

	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	if err := mallory.PatchStatus(cr, map[string]any{"status": map[string]any{"phase": "Forged"}}); err != nil {
		t.Errorf("whoever has all rights on the kind writes its status: %v", err)
	}
	carol.Create(harness.Object("v1", "ConfigMap", far, "hers"))
	for who, refused := range map[string]error{
		"mallory reads a Secret":              mallory.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "default"}, harness.Object("v1", "Secret", "", "")),
		"mallory writes a ConfigMap":          mallory.Client.Create(t.Context(), harness.Object("v1", "ConfigMap", s.Namespace, "x")),
		"mallory has a resource elsewhere":    mallory.Client.Create(t.Context(), inNamespace(p.Thing(s, "shop", nil), far)),
		"carol writes a ConfigMap of another": carol.Client.Create(t.Context(), harness.Object("v1", "ConfigMap", s.Namespace, "x")),
		"carol reads a resource":              carol.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "shop"}, p.Thing(s, "shop", nil)),
	} {
		if !apierrors.IsForbidden(refused) {
			t.Errorf("%s: %v", who, refused)
		}
	}
}

func inNamespace(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	u.SetNamespace(namespace)
	return u
}
