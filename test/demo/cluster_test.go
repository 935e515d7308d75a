package main

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
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
	for _, tc := range []struct {
		reason, apiVersion, kind, name string
		absent, fails                  bool
	}{
		{"it is in the namespace", "apps/v1", "Deployment", "shop", false, false},
		{"it is not there", "v1", "Service", "shop", true, true},
		{"it has no namespace", "v1", "Node", "node-0", false, false},
		{"its kind may not be read, so nobody knows", "policy/v1", "PodDisruptionBudget", "shop", false, true},
	} {
		err := c.read(t.Context(), kindKey{tc.apiVersion, tc.kind}, "shops", tc.name, &struct{}{})
		if errors.Is(err, errAbsent) != tc.absent || (err != nil) != tc.fails {
			t.Errorf("%s: %s: %v", tc.kind, tc.reason, err)
		}
	}
}

func TestAClusterThatIsNotThereYetIsAnError(t *testing.T) {
	c := connect("kubectl", "a.kubeconfig", t.TempDir())
	if _, err := c.kind(t.Context(), kindKey{"v1", "Service"}); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("it answers %v", err)
	}
}
