package e2e

import (
	"net/http"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
)

// TestB5OperatorSurvivesAnOutageOfTheAPIServer is not parallel: all others need the
// API server. Go runs such tests before the parallel ones.
func TestB5OperatorSurvivesAnOutageOfTheAPIServer(t *testing.T) {
	s := newSite(t)
	o := s.operate(packageOf("webapp"), "--health-address", anyPort)
	cr := s.create(s.webapp("before", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.expectReady("before")
	if err := world.cp.StopPart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	line := o.expectLog("the API server cannot be reached, trying again")
	t.Logf("said after %s: %s", since(began), line)
	// The process is alive: restarting it would not help.
	resp, err := http.Get("http://" + o.address(healthServer) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz during the outage: %s", resp.Status)
	}
	if err := world.cp.StartPart(t.Context(), controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	t.Logf("the API server was away for %s", since(began))
	s.create(s.webapp("after", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.expectThat(s.ref("Deployment", "after"), "to be created", exists)
	t.Logf("a new resource was reconciled %s after the return", since(back))
	s.expectReady("after")
	t.Logf("and ready after %s", since(back))
	o.expectLog("the API server is back")
	s.patch(cr, spec(map[string]any{"image": "nginx:1.26"}))
	s.expectReady("before")
	// Others recover as well before the next test: their retries have grown apart.
	s.delete(cr)
	s.expectGone(cr)
}
