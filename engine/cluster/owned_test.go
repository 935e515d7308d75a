package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/clustertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var ownable = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
}

// permitted is a Live whose user may list some kinds, each as "Kind" everywhere or as
// "Kind/namespace". Each place that may be listed has one object.
func permitted(namespaces string, allowed ...string) *cluster.Live {
	kinds := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range ownable {
		scope := apimeta.RESTScopeNamespace
		if kind.Kind == "ClusterRole" {
			scope = apimeta.RESTScopeRoot
		}
		kinds.Add(kind, scope)
	}
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(kinds).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
			where := kind
			if in := (&client.ListOptions{}).ApplyOptions(options).Namespace; in != "" && kind != "ClusterRole" {
				where += "/" + in
			}
			if !slices.Contains(allowed, where) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, "", errors.New("no"))
			}
			found := metav1.PartialObjectMetadata{}
			found.SetName(where)
			list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{found}
			return nil
		},
	}).Build()
	all := func() ([]schema.GroupVersionKind, error) { return ownable, nil }
	var served object.Namespaces
	if namespaces != "" {
		served = strings.Split(namespaces, ",")
	}
	return &cluster.Live{Client: c, Direct: c, Kinds: all, Namespaces: served}
}

func TestOwnedLooksWhereItMay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		live   *cluster.Live
		want   []string
		said   string
		in     string
	}{
		"everywhere": {
			"an object may be in another namespace", permitted("shop", "ConfigMap", "Secret", "ClusterRole", "ConfigMap/shop"),
			[]string{"ConfigMap ConfigMap", "Secret Secret", "ClusterRole ClusterRole"}, "", "",
		},
		"a role of one namespace": {
			"what may not be listed everywhere is there all the same", permitted("shop", "ConfigMap/shop", "Secret/shop"),
			[]string{"ConfigMap ConfigMap/shop", "Secret Secret/shop"}, `"onlyThere"=["ConfigMap" "Secret"] "notAtAll"=["ClusterRole.rbac.authorization.k8s.io"]`, "",
		},
		"some of both": {
			"each kind is allowed by itself", permitted("shop", "ConfigMap/shop", "ClusterRole"),
			[]string{"ConfigMap ConfigMap/shop", "ClusterRole ClusterRole"}, `"onlyThere"=["ConfigMap"] "notAtAll"=["Secret"]`, "",
		},
		"roles of several namespaces": {
			"one that is missing hides nothing of the others", permitted("shop,store,vault", "ConfigMap/shop", "ConfigMap/store", "Secret/store"),
			[]string{"ConfigMap ConfigMap/shop", "ConfigMap ConfigMap/store", "Secret Secret/store"}, `"onlyThere"=["ConfigMap" "Secret"] "notAtAll"=["ClusterRole.rbac.authorization.k8s.io"]`, "",
		},
		"no namespace": {
			"it watches everywhere what it writes", permitted("", "ConfigMap", "Secret"),
			[]string{"ConfigMap ConfigMap", "Secret Secret"}, `"notAtAll"=["ClusterRole.rbac.authorization.k8s.io"]`, "",
		},
		"those of one namespace": {
			"J3: what others have elsewhere is not even looked at", permitted("", "ConfigMap", "Secret", "ConfigMap/mine", "ClusterRole"),
			[]string{"ConfigMap ConfigMap/mine"}, `"notAtAll"=["Secret"]`, "mine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{}))
			found, err := row.live.Owned(ctx, row.in, "owner", "me")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range found {
				got = append(got, u.GetKind()+" "+u.GetName())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if got := log.String(); (got == "") != (row.said == "") || !strings.Contains(got, row.said) {
				t.Errorf("%s: the log says %q, want %s", row.reason, got, row.said)
			}
		})
	}
}

func TestOwnedFindsWhatHasALabelOfWhateverKind(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	for _, text := range []string{configMap, widget, deployment} {
		u := parse(t, s, text)
		u.SetLabels(map[string]string{ownership.OwnerLabel: s.Namespace})
		apply(t, s, u)
	}
	unlabelled := parse(t, s, configMap)
	unlabelled.SetName("b")
	apply(t, s, unlabelled)
	found, err := s.Owned(t.Context(), "", ownership.OwnerLabel, s.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range found {
		got = append(got, cluster.RefOf(u).String())
		if u.GetUID() == "" || u.Object["spec"] != nil {
			t.Errorf("got %v, want metadata", u.Object)
		}
	}
	slices.Sort(got)
	want := []string{"ConfigMap " + s.Namespace + "/a", "Deployment " + s.Namespace + "/web", "Widget " + s.Namespace + "/a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for namespace, want := range map[string]int{s.Namespace: len(got), "kube-system": 0} {
		if found, err := s.Owned(t.Context(), namespace, ownership.OwnerLabel, s.Namespace); err != nil || len(found) != want {
			t.Errorf("in namespace %s are %d, and an error %v, want %d", namespace, len(found), err, want)
		}
	}
}

// discovered returns an API server that serves ConfigMaps in v1, Budgets in budgets.example.com/v1, and a
// group that does not answer.
func discovered(t *testing.T, silent string) *rest.Config {
	t.Helper()
	resources := func(version, kind string) metav1.APIResourceList {
		return metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: strings.ToLower(kind) + "s", Kind: kind, Verbs: metav1.Verbs{"list", "delete"}}}}
	}
	group := func(name string) metav1.APIGroup {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	}
	answers := map[string]any{
		"/api":                         metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1":                      resources("v1", "ConfigMap"),
		"/apis":                        metav1.APIGroupList{Groups: []metav1.APIGroup{group("budgets.example.com"), group(silent)}},
		"/apis/budgets.example.com/v1": resources("budgets.example.com/v1", "Budget"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.Error(w, "nobody serves it", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestOwnedLeavesNoGroupOutThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, silent string
		kinds          func(*rest.Config) func() ([]schema.GroupVersionKind, error)
		wrong          bool
	}{
		"a group of objects": {"an inventory without them would never be missed", "shops.example.com", cluster.Kinds, true},
		"metrics":            {"nobody owns any, and they may be dead for ever", "custom.metrics.k8s.io", cluster.Kinds, false},
		"a command shows these": {"what there is is better than nothing", "shops.example.com", func(c *rest.Config) func() ([]schema.GroupVersionKind, error) {
			live, err := cluster.NewUncachedLive(c)
			if err != nil {
				t.Fatal(err)
			}
			return live.Kinds
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := permitted("", "ConfigMap", "Budget")
			live.Kinds = row.kinds(discovered(t, row.silent))
			found, err := live.Owned(t.Context(), "", "owner", "me")
			if (err != nil) != row.wrong || err == nil && len(found) != 2 {
				t.Errorf("%s: got %d objects and error %v", row.reason, len(found), err)
			}
		})
	}
}
