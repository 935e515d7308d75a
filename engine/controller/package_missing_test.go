package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/ownership"
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
		want        []packageMissingKind
	}{
		"None": {"what has no label is not a package's", nil, nil},
		"Namespaced": {
			"the version is the preferred one, and a subresource is no kind",
			map[string]string{"things.a.example.com": "a"},
			[]packageMissingKind{{GroupVersionKind: schema.GroupVersionKind{Group: "a.example.com", Version: "v2", Kind: "Thing"}, pkg: "a", namespaced: true}},
		},
		"ClusterScoped": {
			"an operator of one namespace has to know",
			map[string]string{"things.b.example.com": ""},
			[]packageMissingKind{{GroupVersionKind: schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Thing"}}},
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
		if diff := cmp.Diff(c.want, kindsDefined(definitions, served), cmp.AllowUnexported(packageMissingKind{})); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

func TestTheReachOfAPackageIsReadFromItsDefinition(t *testing.T) {
	t.Parallel()
	far := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "there"}
	for name, row := range map[string]struct {
		reason, text   string
		known, reaches bool
	}{
		"as it was written": {"the operator writes it", "Secret=there", true, true},
		"elsewhere":         {"the package says where", "Secret=elsewhere", true, false},
		"nonsense":          {"what it means decides what is deleted", "Secret=*=*", false, false},
	} {
		definition := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{crd.ReachAnnotation: row.text}}}
		reach := reachOf(definition)
		owner := ownership.Owner{Ref: cluster.Ref{Namespace: "here"}, Reach: reach}
		if (reach != nil) != row.known || owner.Reaches(far) != row.reaches {
			t.Errorf("%s: %s: known %v, reaches %v", name, row.reason, reach != nil, owner.Reaches(far))
		}
	}
	if reachOf(metav1.PartialObjectMetadata{}) != nil {
		t.Error("an older operator has not said it")
	}
}
