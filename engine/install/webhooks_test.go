package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/rbac"
)

// defined returns a definition of some versions, of which the first is stored, and the only one that is served.
func defined(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = "shops.shop.example"
	for i, name := range versions {
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Storage: i == 0, Served: i == 0})
		if i > 0 {
			out.Annotations = map[string]string{crd.ConvertedAnnotation: name}
		}
	}
	return out
}

func TestADefinitionIsServedAsFarAsTheOperatorConvertsIt(t *testing.T) {
	t.Parallel()
	home := rbac.Options{OperatorNamespace: "home", ServiceAccount: "op"}
	for name, tc := range map[string]struct {
		reason   string
		options  Options
		versions []string
		served   []string
		converts bool
		injects  string
		patches  bool
	}{
		"Without":     {"nobody converts", Options{Options: home}, []string{"v1", "v1beta1"}, []string{"v1"}, false, "", false},
		"Operator":    {"the operator does, and says whom to trust", Options{Options: home, Webhooks: Operator}, []string{"v1", "v1beta1"}, []string{"v1", "v1beta1"}, true, "", true},
		"CertManager": {"cert-manager says whom to trust", Options{Options: home, Webhooks: CertManager}, []string{"v1", "v1beta1"}, []string{"v1", "v1beta1"}, true, "home/op-webhooks", false},
		"OneVersion":  {"there is nothing to convert", Options{Options: home, Webhooks: Operator}, []string{"v1"}, []string{"v1"}, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.options.Convert(defined(tc.versions...))
			var served []string
			for _, v := range got.Spec.Versions {
				if v.Served {
					served = append(served, v.Name)
				}
			}
			if diff := cmp.Diff(tc.served, served); diff != "" {
				t.Errorf("%s: served (-want +got):\n%s", tc.reason, diff)
			}
			if (got.Spec.Conversion != nil) != tc.converts || got.Annotations["cert-manager.io/inject-ca-from"] != tc.injects {
				t.Errorf("%s: got %+v and %v", tc.reason, got.Spec.Conversion, got.Annotations)
			}
			if tc.converts {
				to := got.Spec.Conversion.Webhook.ClientConfig.Service
				if to == nil || to.Namespace != "home" || to.Name != "op-webhooks" || *to.Path != "/convert" || *to.Port != 443 {
					t.Errorf("%s: it calls %+v", tc.reason, to)
				}
			}
			if patches := mayPatchDefinitions(Webhooks([]Kind{{CRD: defined(tc.versions...)}}, tc.options)); patches != tc.patches {
				t.Errorf("%s: the right to say whom to trust is %t", tc.reason, patches)
			}
		})
	}
}

// The API server learns of an authority at once, and a pod gets the certificate later, so another certificate must have the same authority.
func TestCertManagerSignsEachCertificateByAnAuthorityThatStays(t *testing.T) {
	t.Parallel()
	got := map[string]map[string]any{}
	for _, o := range Webhooks(nil, Options{Options: rbac.Options{OperatorNamespace: "home", ServiceAccount: "op"}, Webhooks: CertManager}) {
		if u, is := o.(*unstructured.Unstructured); is {
			got[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object["spec"].(map[string]any)
		}
	}
	issuer := func(name string) map[string]any { return map[string]any{"kind": "Issuer", "name": name} }
	want := map[string]map[string]any{
		"Issuer home/op-webhooks-authority":      {"selfSigned": map[string]any{}},
		"Certificate home/op-webhooks-authority": {"isCA": true, "commonName": "operetta-webhooks-authority", "secretName": "op-webhooks-authority", "duration": "87600h", "issuerRef": issuer("op-webhooks-authority")},
		"Issuer home/op-webhooks":                {"ca": map[string]any{"secretName": "op-webhooks-authority"}},
		"Certificate home/op-webhooks":           {"secretName": "op-webhooks", "dnsNames": []any{"op-webhooks.home.svc", "op-webhooks.home.svc.cluster.local"}, "issuerRef": issuer("op-webhooks")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the objects of cert-manager (-want +got):\n%s", diff)
	}
}

// mayPatchDefinitions reports whether a role among objects lets the operator change the definition, by its name.
func mayPatchDefinitions(objects []any) bool {
	for _, o := range objects {
		role, is := o.(*rbacv1.ClusterRole)
		if is && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "customresourcedefinitions") && slices.Contains(r.Verbs, "patch") && slices.Equal(r.ResourceNames, []string{"shops.shop.example"})
		}) {
			return true
		}
	}
	return false
}
