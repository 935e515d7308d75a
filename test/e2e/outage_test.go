package e2e

import (
	"net/http"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// TestB5OperatorSurvivesAnOutageOfTheAPIServer is not parallel, because all other tests need the API
// server. Go runs such tests before the parallel ones.
func TestB5OperatorSurvivesAnOutageOfTheAPIServer(t *testing.T) {
	s := newEnv(t)
	s.ExpectRefusals("an API server that starts refuses everybody until it has read the roles")
	o := s.StartOperator(harness.PackageDir("webapp"), "--health-probe-bind-address", harness.AnyPort)
	cr := s.Create(s.Webapp("before", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.ExpectReady("before")
	if err := harness.Suite.ControlPlane.StopPart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	line := o.ExpectLog("the API server cannot be reached, trying again")
	t.Logf("said after %s: %s", harness.Elapsed(began), line)
	// The process is alive, because a restart would not help.
	resp, err := http.Get("http://" + o.Address(harness.HealthServer) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz during the outage: %s", resp.Status)
	}
	if err := harness.Suite.ControlPlane.StartPart(t.Context(), controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	t.Logf("the API server was away for %s", harness.Elapsed(began))
	s.Create(s.Webapp("after", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.ExpectObject(s.Ref("Deployment", "after"), "to be created", harness.Exists)
	t.Logf("a new resource was reconciled %s after the return", harness.Elapsed(back))
	s.ExpectReady("after")
	t.Logf("and ready after %s", harness.Elapsed(back))
	o.ExpectLog("the API server is back")
	s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
	s.ExpectReady("before")
	// The clients of other parts recover before the next test; their retry intervals have grown.
	s.Delete(cr)
	s.ExpectGone(cr)
}
