package main

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeCluster returns a cluster whose proxy answers paths with texts.
func fakeCluster(t *testing.T, answers map[string]string) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := connect("kubectl", "a.kubeconfig", dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "proxy"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case text == "":
			w.WriteHeader(http.StatusForbidden)
		default:
			_, _ = w.Write([]byte(text))
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

var discovery = map[string]string{
	"/api/v1": `{"resources": [{"name": "services", "kind": "Service", "namespaced": true}, {"name": "nodes", "kind": "Node"}]}`,
	"/apis/apps/v1": `{"resources": [
		{"name": "deployments", "kind": "Deployment", "namespaced": true},
		{"name": "deployments/scale", "kind": "Scale", "namespaced": true},
		{"name": "deployments/status", "kind": "Deployment", "namespaced": true}]}`,
	"/apis/apps/v1/namespaces/shops/deployments/shop": `{"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}`,
	"/api/v1/nodes/node-0":                            `{}`,
	"/apis/policy/v1":                                 "",
}

func TestKindsAreWhatTheAPIServerServes(t *testing.T) {
	c := fakeCluster(t, discovery)
	got, err := c.kind(t.Context(), kindKey{"apps/v1", "Deployment"})
	if want := (kindInfo{plural: "deployments", namespaced: true, scalable: true}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, k := range []kindKey{{"apps/v1", "Scaler"}, {"example.com/v1", "WebApp"}} {
		if _, err := c.kind(t.Context(), k); !errors.Is(err, errAbsent) {
			t.Errorf("%v: %v", k, err)
		}
	}
	if _, err := c.kind(t.Context(), kindKey{"policy/v1", "PodDisruptionBudget"}); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("what is forbidden: %v", err)
	}
}

func TestObjectsAreReadInTheirNamespaces(t *testing.T) {
	c := fakeCluster(t, discovery)
	deployment := entry{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}
	service := entry{APIVersion: "v1", Kind: "Service", Name: "shop"}
	node := entry{APIVersion: "v1", Kind: "Node", Namespace: "*", Name: "node-0"}
	forbidden := entry{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: "shop"}
	var r resource
	r.Metadata.Namespace = "shops"
	r.Status.Inventory = []group{{Objects: []entry{deployment, service}}, {Objects: []entry{node, forbidden}}}
	got := c.observe(t.Context(), r)
	absent := map[entry]bool{}
	for e, l := range got {
		absent[e] = l.absent
	}
	if diff := cmp.Diff(map[entry]bool{deployment: false, service: true, node: false}, absent); diff != "" {
		t.Errorf("objects, and whether they are absent (-want +got):\n%s", diff)
	}
	if l := got[deployment]; *l.object.Spec.Replicas != 3 || l.object.Status.ReadyReplicas != 2 {
		t.Errorf("the deployment: %+v", l.object)
	}
}

func TestAClusterThatIsNotThereYetIsAnError(t *testing.T) {
	c := connect("kubectl", "a.kubeconfig", t.TempDir())
	if _, err := c.kind(t.Context(), kindKey{"v1", "Service"}); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("it answers %v", err)
	}
}
