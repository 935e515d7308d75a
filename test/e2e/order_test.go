package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// enclosingBody has a Namespace that is written first, and that may come after its content: in
// CUE, what a template takes from its parameters by for or if is before the rest of it.
const enclosingBody = `
#Spec: {
	users: [...string]
	closed: bool | *true
}
reach: {Namespace: {}, "RoleBinding.rbac.authorization.k8s.io": namespaces: "*": true, "NetworkPolicy.networking.k8s.io": namespaces: "*": true}

HEAD
objects: {
	namespace: {
		apiVersion: "v1"
		kind:       "Namespace"
		metadata: name: _space
	}
	for user in INPUT.users {
		"user-\(user)": {
			apiVersion: "rbac.authorization.k8s.io/v1"
			kind:       "RoleBinding"
			metadata: {name: user, namespace: _space}
			roleRef: {apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view"}
			subjects: [{apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user}] @untrusted(rbac)
		}
	}
	if INPUT.closed {
		closed: {
			apiVersion: "networking.k8s.io/v1"
			kind:       "NetworkPolicy"
			metadata: {name: "closed", namespace: _space}
			spec: {podSelector: {}, policyTypes: ["Ingress"]}
		}
	}
}
}
_space: "\(cr.metadata.namespace)-\(cr.metadata.name)"
`

// inputForms are the forms in which the component of enclosingBody may be written.
var inputForms = map[string]struct{ head, input string }{
	"plain":    {"components: space: {", "cr.spec"},
	"template": {"components: space: _part & {#in: cr.spec}\n_part: {\n#in: _", "#in"},
	"loop":     {"components: {for env in [\"space\"] {(env): _part & {#in: cr.spec}}}\n_part: {\n#in: _", "#in"},
}

func TestANamespaceThatComesAfterItsContentIsCreatedBeforeIt(t *testing.T) {
	t.Parallel()
	for name, form := range inputForms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "enclosing"+name, strings.NewReplacer("HEAD", form.head, "INPUT", form.input).Replace(enclosingBody))
			s.StartOperator(p.Dir)
			cr := p.Thing(s.Env, "in", map[string]any{"users": []any{"ada", "grace"}})
			all := s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, cr)
			s.expectWritten(all, "namespaces", "networkpolicies", "rolebindings", "rolebindings")
			s.Patch(cr, harness.Spec(map[string]any{"users": []any{"ada", "grace", "alan"}, "closed": false}))
			s.ExpectResourceReady(cr)
			// A person deletes the Namespace: it is created again before its content.
			s.expectRestored(harness.Object("v1", "Namespace", "", s.Namespace+"-in"))
			s.ExpectResourceReady(cr)
			s.expectNothingLeft([]*unstructured.Unstructured{cr})
		})
	}
}

// definingBody renders a resource before the CustomResourceDefinition of its kind, in one component.
const definingBody = `
#Spec: text: string
reach: "CustomResourceDefinition.apiextensions.k8s.io": {}

components: both: objects: {
	resource: {
		apiVersion: "own.NAME.example.com/v1"
		kind:       "Own"
		metadata: name: cr.metadata.name
		spec: text: cr.spec.text
	}
	definition: {
		apiVersion: "apiextensions.k8s.io/v1"
		kind:       "CustomResourceDefinition"
		metadata: name: "owns.own.NAME.example.com"
		spec: {
			group: "own.NAME.example.com"
			names: {kind: "Own", plural: "owns", singular: "own", listKind: "OwnList"}
			scope: "Namespaced"
			versions: [{
				name:    "v1"
				served:  true
				storage: true
				schema: openAPIV3Schema: {
					type: "object"
					properties: spec: {type: "object", properties: text: type: "string"}
				}
			}]
		}
	}
}
`

func TestAResourceThatIsWrittenBeforeTheDefinitionOfItsKindIsCreatedAfterIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "defining", definingBody)
	s.StartOperator(p.Dir)
	cr := p.Thing(s.Env, "in", map[string]any{"text": "a"})
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	s.ExpectObject(harness.Object("own.defining.example.com/v1", "Own", s.Namespace, "in"), "to exist", harness.Exists)
	s.expectNothingLeft([]*unstructured.Unstructured{cr})
}
