package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
)

func TestADefinitionSaysWhatThePackageSays(t *testing.T) {
	reach, err := program.ParseReach("ConfigMap=monitoring Namespace")
	if err != nil {
		t.Fatal(err)
	}
	got := crdDefinition("site", reach, program.Meta{
		Group: "example.com", Kind: "Site", Plural: "sites", Singular: "site",
		Description: "A site.", ShortNames: []string{"si"}, Categories: []string{"all"}, ClusterScoped: true,
		Versions: []program.VersionMeta{
			{Name: "v1", Served: true, Storage: true, Columns: []program.Column{
				{Title: "Image", JSONPath: ".spec.image", Type: "string", Format: "f", Description: "d", Priority: 1},
			}, Scale: program.Scale{Replicas: ".spec.replicas", Observed: ".status.replicas"}},
			{Name: "v1beta1", Deprecated: "use v1"},
		},
	})
	want := crd.CustomResource{
		Package: "site", Reach: "ConfigMap=monitoring Namespace",
		Group: "example.com", Kind: "Site", Plural: "sites", Singular: "site",
		Description: "A site.", ShortNames: []string{"si"}, Categories: []string{"all"},
		Scope: apiextensionsv1.ClusterScoped,
		Versions: []crd.Version{
			{Name: "v1", Served: true, Storage: true, PrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
				{Name: "Image", JSONPath: ".spec.image", Type: "string", Format: "f", Description: "d", Priority: 1},
			}, Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}},
			{Name: "v1beta1", Deprecated: "use v1"},
		},
	}
	// The schemas are handed on as they are; CUE values cannot be compared.
	values := cmp.FilterPath(func(p cmp.Path) bool { n := p.Last().String(); return n == ".Spec" || n == ".Status" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
}

func TestAResourceIsNamespacedUnlessItSays(t *testing.T) {
	if got := crdDefinition("", program.Reach{}, program.Meta{}).Scope; got != apiextensionsv1.NamespaceScoped {
		t.Errorf("got %q, want %q", got, apiextensionsv1.NamespaceScoped)
	}
}
