package e2e

import (
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// TestCachedObjectsAreNeverChanged runs the operator with client-go's mutation detector, which compares
// each object of a cache with a copy every second and ends the process if they differ: the engine
// reads from the cache without copies.
func TestCachedObjectsAreNeverChanged(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26", "replicas": 2}))
	s.ExpectReady("shop")
	s.Patch(s.Get("Service", "shop"), harness.Spec(map[string]any{"selector": map[string]any{"app.kubernetes.io/instance": "other"}}))
	s.ExpectEvent("shop", "Repaired", "Service")
	s.Delete(cr)
	s.ExpectGone(cr)
	select {
	case <-o.Ended:
		t.Error("an object of a cache was changed")
	case <-time.After(3 * time.Second): // of which each second has a comparison
	}
}
