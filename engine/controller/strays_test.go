package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKindsOfPackagesAreFoundByTheirDefinitions(t *testing.T) {
	t.Parallel()
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Namespaced: true}}},
		{GroupVersion: "a.example.com/v2", APIResources: []metav1.APIResource{
			{Name: "things", Kind: "Thing", Namespaced: true},
			{Name: "things/status", Kind: "Thing", Namespaced: true},
			{Name: "others", Kind: "Other", Namespaced: true},
		}},
		{GroupVersion: "b.example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}},
		{GroupVersion: "one/too/many", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}},
	}
	for name, c := range map[string]struct {
		reason      string
		definitions map[string]string
		want        []strayKind
	}{
		"None": {"what has no label is not a package's", nil, nil},
		"Namespaced": {
			"the version is the preferred one, and a subresource is no kind",
			map[string]string{"things.a.example.com": "a"},
			[]strayKind{{schema.GroupVersionKind{Group: "a.example.com", Version: "v2", Kind: "Thing"}, "a", true}},
		},
		"ClusterScoped": {
			"an operator of one namespace has to know",
			map[string]string{"things.b.example.com": ""},
			[]strayKind{{schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Thing"}, "", false}},
		},
		"NotServed": {
			"a definition that is not served has no resources",
			map[string]string{"things.c.example.com": "c"}, nil,
		},
	} {
		var definitions []metav1.PartialObjectMetadata
		for crd, pkg := range c.definitions {
			definitions = append(definitions, metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{Name: crd, Labels: map[string]string{"operetta.dev/package": pkg}},
			})
		}
		if diff := cmp.Diff(c.want, kindsDefined(definitions, served), cmp.AllowUnexported(strayKind{})); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}
