package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/object"
	"operetta.dev/engine/policy"
)

var (
	shops   = schema.GroupResource{Group: "example.com", Resource: "shops"}
	patches = schema.GroupResource{Group: "operetta.dev", Resource: "patches"}
)

// read returns a policy and its binding in the types of the API.
func read(t *testing.T, objects []any) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	if len(objects) != 2 {
		t.Fatalf("%d objects", len(objects))
	}
	return objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy), objects[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
}

func TestPoliciesDenyAndFailClosed(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]func(policy.Options) []any{
		"status": func(o policy.Options) []any {
			return policy.Status(shops, []string{"phase"}, []string{"Ready"}, o)
		},
		"patches": func(o policy.Options) []any {
			return policy.Patches(patches, nil, policy.Resources(nil, nil), o)
		},
	} {
		for _, namespaces := range []object.Namespaces{nil, {"team-a"}} {
			t.Run(name+" "+namespaces.String(), func(t *testing.T) {
				t.Parallel()
				p, b := read(t, policies(policy.Options{Operators: []string{"operator"}, Namespaces: namespaces}))
				if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
					t.Error("what cannot be decided is allowed")
				}
				if diff := cmp.Diff([]admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}, b.Spec.ValidationActions); diff != "" {
					t.Errorf("actions (-want +got):\n%s", diff)
				}
				if b.Spec.PolicyName != p.Name || strings.Contains(p.Name, "team-a") != !namespaces.All() {
					t.Errorf("the binding %s is of %s", b.Name, b.Spec.PolicyName)
				}
				if got := fmt.Sprint(b.Spec.MatchResources.NamespaceSelector != nil); got != fmt.Sprint(!namespaces.All()) {
					t.Errorf("the binding selects namespaces: %s", got)
				}
			})
		}
	}
}

func TestTextsOfOthersStayTexts(t *testing.T) {
	t.Parallel()
	const user = `x"] || true || "" in ["`
	p, _ := read(t, policy.Status(shops, []string{"phase"}, []string{"Ready"}, policy.Options{Operators: []string{user}}))
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

func TestPoliciesOfTwoOperatorsNeverHaveTheSameName(t *testing.T) {
	t.Parallel()
	shop := &policy.Resource{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, Plural: "shops"}
	cart := &policy.Resource{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Cart"}, Plural: "carts"}
	all := func(o policy.Options, kind *policy.Resource, selector string) map[string]bool {
		out := map[string]bool{}
		ofPackages, err := policy.PackageStatus(schema.GroupResource{Group: "operetta.dev", Resource: "packages"}, []string{"digest"}, selector, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, objects := range [][]any{policy.PatchStatus(patches, []string{"conditions"}, kind, o), policy.Patches(patches, kind, nil, o), ofPackages} {
			p, _ := read(t, objects)
			out[p.Name] = true
		}
		return out
	}
	a, b := policy.Options{Operators: []string{"a"}}, policy.Options{Operators: []string{"b"}}
	others := all(b, cart, "team=b")
	for name := range all(a, shop, "team=a") {
		if others[name] {
			t.Errorf("two operators of different kinds and Packages both have %s", name)
		}
	}
	if diff := cmp.Diff(all(a, shop, "team in (a),x"), all(b, shop, "x,team in (a)")); diff != "" {
		t.Errorf("an operator that comes to run as another user leaves the policies of the first behind (-first +second):\n%s", diff)
	}
}

func TestAPolicyAboutPatchesAppliesToTheKindsOfItsOperator(t *testing.T) {
	t.Parallel()
	shop := &policy.Resource{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, Plural: "shops"}
	for name, tc := range map[string]struct {
		reason string
		kind   *policy.Resource
		want   string
	}{
		"Kind": {"the Patches for other kinds are those of other operators", shop, `== "example.com/Shop"`},
		"AnyKind": {"who serves Packages of the cluster does not know their kinds, and is not the only operator", nil, `!(request.userInfo.username.startsWith("system:serviceaccount:") && authorizer.group("operetta.dev").resource("patches").subresource("status").namespace(request.namespace).check("patch").allowed() ||
  authorizer.group("operetta.dev").resource("patches").subresource("status").check("patch").allowed())`},
		"TextKind": {"the name of a kind is no expression", &policy.Resource{GroupKind: schema.GroupKind{Kind: `" || true`}}, `== "/\" || true"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := read(t, policy.PatchStatus(patches, []string{"conditions"}, tc.kind, policy.Options{Operators: []string{"a"}}))
			if got := p.Spec.MatchConditions; len(got) != 2 || !strings.HasSuffix(got[1].Expression, tc.want) {
				t.Errorf("%s: got %v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
