package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/policy"
)

var (
	shops   = schema.GroupResource{Group: "example.com", Resource: "shops"}
	patches = schema.GroupResource{Group: "operetta.dev", Resource: "patches"}
)

// read returns a policy and its binding in the types of the API.
func read(t *testing.T, objects []*unstructured.Unstructured, err error) (p admissionregistrationv1.ValidatingAdmissionPolicy, b admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects: %v", len(objects), err)
	}
	for i, into := range []any{&p, &b} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	return p, b
}

func TestPoliciesDenyAndFailClosed(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]func(policy.Options) ([]*unstructured.Unstructured, error){
		"status": func(o policy.Options) ([]*unstructured.Unstructured, error) {
			return policy.Status(shops, []string{"phase"}, []string{"Ready"}, o)
		},
		"patches": func(o policy.Options) ([]*unstructured.Unstructured, error) {
			return policy.Patches(patches, policy.Resources(nil, nil), o)
		},
	} {
		for _, namespace := range []string{"", "team-a"} {
			t.Run(name+" "+namespace, func(t *testing.T) {
				t.Parallel()
				objects, err := policies(policy.Options{Operators: []string{"operator"}, Namespace: namespace})
				p, b := read(t, objects, err)
				if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
					t.Error("what cannot be decided is allowed")
				}
				if diff := cmp.Diff([]admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}, b.Spec.ValidationActions); diff != "" {
					t.Errorf("actions (-want +got):\n%s", diff)
				}
				if b.Spec.PolicyName != p.Name || strings.Contains(p.Name, "team-a") != (namespace != "") {
					t.Errorf("the binding %s is of %s", b.Name, b.Spec.PolicyName)
				}
				if got := fmt.Sprint(b.Spec.MatchResources.NamespaceSelector != nil); got != fmt.Sprint(namespace != "") {
					t.Errorf("the binding selects namespaces: %s", got)
				}
			})
		}
	}
}

func TestTextsOfOthersStayTexts(t *testing.T) {
	t.Parallel()
	const user = `x"] || true || "" in ["`
	objects, err := policy.Status(shops, []string{"phase"}, []string{"Ready"}, policy.Options{Operators: []string{user}})
	p, _ := read(t, objects, err)
	if got := p.Spec.MatchConditions[0].Expression; !strings.Contains(got, `"x\"] || true || \"\" in [\""`) {
		t.Errorf("the user is part of the expression: %s", got)
	}
}

func TestKindsAreKnownByTheirResources(t *testing.T) {
	t.Parallel()
	known := policy.Resource{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, Plural: "shoppes"}
	got := map[string]string{}
	for _, r := range policy.Resources([]policy.Resource{known}, []schema.GroupKind{known.GroupKind, {Group: "cert.example.com", Kind: "Policy"}}) {
		got[r.GroupKind.String()] = r.Plural
		if r.Group != "example.com" && r.Group != "cert.example.com" && !isKubernetes(r.GroupKind) {
			t.Errorf("Kubernetes has no %s", r.GroupKind)
		}
	}
	for kind, want := range map[string]string{
		"Shop.example.com": "shoppes", "Policy.cert.example.com": "policies", "Endpoints": "endpoints",
		"Ingress.networking.k8s.io": "ingresses", "NetworkPolicy.networking.k8s.io": "networkpolicies", "Deployment.apps": "deployments", "Secret": "secrets",
		"CSIStorageCapacity.storage.k8s.io": "csistoragecapacities",
	} {
		if got[kind] != want {
			t.Errorf("%s is %q, want %q", kind, got[kind], want)
		}
	}
}

func isKubernetes(kind schema.GroupKind) bool {
	for _, v := range scheme.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		if scheme.Scheme.Recognizes(v.WithKind(kind.Kind)) {
			return true
		}
	}
	return false
}
