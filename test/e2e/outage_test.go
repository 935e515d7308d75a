package e2e

import (
	"net/http"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// TestB5OperatorSurvivesAnOutageOfTheAPIServer is not parallel: all others need the
// API server. Go runs such tests before the parallel ones.
func TestB5OperatorSurvivesAnOutageOfTheAPIServer(t *testing.T) {
	s := newSite(t)
	o := s.Operate(harness.PackageOf("webapp"), "--health-probe-bind-address", harness.AnyPort)
	cr := s.Create(s.Webapp("before", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.ExpectReady("before")
	if err := harness.World.ControlPlane.StopPart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	line := o.ExpectLog("the API server cannot be reached, trying again")
	t.Logf("said after %s: %s", harness.Since(began), line)
	// The process is alive: restarting it would not help.
	resp, err := http.Get("http://" + o.Address(harness.HealthServer) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz during the outage: %s", resp.Status)
	}
	if err := harness.World.ControlPlane.StartPart(t.Context(), controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	t.Logf("the API server was away for %s", harness.Since(began))
	s.Create(s.Webapp("after", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.ExpectThat(s.Ref("Deployment", "after"), "to be created", harness.Exists)
	t.Logf("a new resource was reconciled %s after the return", harness.Since(back))
	s.ExpectReady("after")
	t.Logf("and ready after %s", harness.Since(back))
	o.ExpectLog("the API server is back")
	s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
	s.ExpectReady("before")
	// Others recover as well before the next test: their retries have grown apart.
	s.Delete(cr)
	s.ExpectGone(cr)
}
