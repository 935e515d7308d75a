package cluster_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		for range 2 { // other made it discover the group again
			var redefined *cluster.RedefinedError
			if _, err := m.RESTMapping(thing, "v1"); !errors.As(err, &redefined) {
				t.Errorf("error %v: the clients go on with the first scope", err)
			}
		}
		d.served[thing] = apimeta.RESTScopeNamespace
		<-time.After(time.Minute) // the clock is synctest's
		if mapping, err := m.RESTMapping(thing, "v1"); err != nil || mapping.Scope.Name() != apimeta.RESTScopeNameNamespace {
			t.Errorf("mapping %v and error %v: it is as it was", mapping, err)
		}
	})
}

// A definitions is an API server of one kind, whose scope changes.
type definitions struct {
	*httptest.Server

	mu     sync.Mutex
	scope  cluster.Scope // "" while it is not served
	groups int
}

// define installs the definition with a scope, or removes it for "".
func (d *definitions) define(scope cluster.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scope = scope
}

// discoveries returns how often the groups were asked for since the last call.
func (d *definitions) discoveries() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.groups
	d.groups = 0
	return out
}

// newDefinitions returns an API server of Things, each of which is missing.
func newDefinitions(t *testing.T) *definitions {
	t.Helper()
	d := &definitions{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		answer := func(code int, v any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(v)
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}
		missing := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "things"}, "a").ErrStatus
		missing.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		path, namespaced := r.URL.Path, d.scope == cluster.Namespaced
		switch {
		case path == "/api":
			answer(http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
		case path == "/apis":
			d.groups++
			answer(http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
		case path == "/apis/example.com/v1" && d.scope != "":
			answer(http.StatusOK, metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Namespaced: namespaced, Verbs: metav1.Verbs{"get"}}}})
		case path == "/apis/example.com/v1/namespaces/default/things/a" && namespaced, path == "/apis/example.com/v1/things/a" && d.scope == cluster.ClusterScoped:
			answer(http.StatusNotFound, missing)
		default:
			http.Error(w, "404 page not found", http.StatusNotFound)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

// The clients of controller-runtime keep the path of a kind for ever.
func TestAKindThatWasDefinedAgainWithAnotherScopeIsSaidToNeedARestart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		was, is    cluster.Scope
		unreadable bool
		unserved   bool
	}{
		"namespaced, then cluster-scoped": {"no request finds it", cluster.Namespaced, cluster.ClusterScoped, true, false},
		"cluster-scoped, then namespaced": {"no request finds it", cluster.ClusterScoped, cluster.Namespaced, true, false},
		"the same":                        {"its objects are where they were", cluster.Namespaced, cluster.Namespaced, false, false},
		"gone":                            {"it may come back as it was", cluster.Namespaced, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDefinitions(t)
			d.define(row.was)
			config := &rest.Config{Host: d.URL}
			mapper, err := cluster.NewRESTMapper(config, d.Client())
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.New(config, client.Options{HTTPClient: d.Client(), Mapper: mapper})
			if err != nil {
				t.Fatal(err)
			}
			live := &cluster.Live{Client: c, Direct: c}
			ref := cluster.Ref{GroupVersionKind: thing.WithVersion("v1"), Namespace: "default", Name: "a"}
			if u, err := live.GetLive(t.Context(), ref); u != nil || err != nil {
				t.Fatalf("got %v and error %v before", u, err)
			}
			d.define(row.is)
			for range 3 {
				_, err := live.GetLive(t.Context(), ref)
				var unreadable *cluster.KindUnreadableError
				if errors.As(err, &unreadable) != row.unreadable || cluster.IsKindNotServed(err) != row.unserved {
					t.Fatalf("%s: got error %v", row.reason, err)
				}
				if row.unreadable && !strings.Contains(err.Error(), "restart the operator") {
					t.Errorf("%s: %v says no remedy", row.reason, err)
				}
			}
			if n := d.discoveries(); n > 2 {
				t.Errorf("all groups were asked for %d times", n)
			}
		})
	}
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
