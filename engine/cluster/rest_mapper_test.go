package cluster_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"operetta.dev/engine/cluster"
)

// A discovery is a RESTMapper that counts questions, and whose kinds come and go.
type discovery struct {
	apimeta.RESTMapper

	served map[schema.GroupKind]apimeta.RESTScope
	asked  int
}

func (d *discovery) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	d.asked++
	scope, is := d.served[kind]
	if !is {
		return nil, &apimeta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &apimeta.RESTMapping{GroupVersionKind: kind.WithVersion("v1"), Scope: scope}, nil
}

var (
	thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}
	other = schema.GroupKind{Group: "example.com", Kind: "Other"}
)

// expectMapping fails the test unless a kind has a scope, "" for none, after so many questions in all.
func (d *discovery) expectMapping(t *testing.T, m apimeta.RESTMapper, kind schema.GroupKind, want apimeta.RESTScopeName, asked int) {
	t.Helper()
	mapping, err := m.RESTMapping(kind, "v1")
	var got apimeta.RESTScopeName
	if err == nil {
		got = mapping.Scope.Name()
	} else if !apimeta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	if got != want || d.asked != asked {
		t.Errorf("%s has scope %q after %d questions, want %q after %d", kind.Kind, got, d.asked, want, asked)
	}
}

func TestMappingOfAKindIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	d := &discovery{served: map[schema.GroupKind]apimeta.RESTScope{thing: apimeta.RESTScopeNamespace}}
	m := cluster.CacheMappings(d)
	for range 3 {
		d.expectMapping(t, m, thing, apimeta.RESTScopeNameNamespace, 1)
	}
}

func TestKindThatIsNotServedIsLookedUpEachTime(t *testing.T) {
	t.Parallel()
	d := &discovery{served: map[schema.GroupKind]apimeta.RESTScope{}}
	m := cluster.CacheMappings(d)
	d.expectMapping(t, m, thing, "", 1)
	d.expectMapping(t, m, thing, "", 2)
	d.served[thing] = apimeta.RESTScopeRoot
	d.expectMapping(t, m, thing, apimeta.RESTScopeNameRoot, 3)
	d.expectMapping(t, m, thing, apimeta.RESTScopeNameRoot, 3)
}

func TestDefinitionInstalledWithAnotherScopeIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &discovery{served: map[schema.GroupKind]apimeta.RESTScope{thing: apimeta.RESTScopeNamespace}}
		m := cluster.CacheMappings(d)
		d.expectMapping(t, m, thing, apimeta.RESTScopeNameNamespace, 1)
		d.served[thing] = apimeta.RESTScopeRoot
		d.expectMapping(t, m, other, "", 2)
		d.expectMapping(t, m, thing, apimeta.RESTScopeNameRoot, 3) // other made it discover the group again
		d.served[thing] = apimeta.RESTScopeNamespace
		<-time.After(time.Minute) // the clock is synctest's
		d.expectMapping(t, m, thing, apimeta.RESTScopeNameNamespace, 4)
	})
}

// BenchmarkScope looks up a kind among all built-in groups.
func BenchmarkScope(b *testing.B) {
	var groups []*restmapper.APIGroupResources
	for _, v := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		g := &restmapper.APIGroupResources{
			Group:              metav1.APIGroup{Name: v.Group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: v.String(), Version: v.Version}}},
			VersionedResources: map[string][]metav1.APIResource{},
		}
		for kind := range scheme.Scheme.KnownTypes(v) {
			g.VersionedResources[v.Version] = append(g.VersionedResources[v.Version], metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true})
		}
		groups = append(groups, g)
	}
	discovered := restmapper.NewDiscoveryRESTMapper(groups)
	for name, m := range map[string]apimeta.RESTMapper{"discovered": discovered, "cached": cluster.CacheMappings(discovered)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
