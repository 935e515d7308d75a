package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// handoverLimit is how soon the next operator acts after the leader has stopped.
const handoverLimit = 2 * time.Second

// leaseAcquiredText is what controller-runtime logs when a process becomes the leader.
const leaseAcquiredText = "Successfully acquired lease"

func TestI5K45W46OneOfTwoOperatorsActsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	lead := []string{harness.PackageDir("webapp"), "--leader-elect", "--leader-elect-namespace", s.Namespace}
	first := s.StartOperator(lead...)
	first.ExpectLog(leaseAcquiredText)
	second := s.StartOperator(lead...)
	s.Create(s.Webapp("one", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.ExpectReady("one")
	if n := second.Reconciles("webapp.example.com"); n != 0 {
		t.Errorf("the operator that does not lead has reconciled %d times", n)
	}
	harness.Fastest(t, handoverLimit, "a handover", func(try int) time.Duration {
		name := fmt.Sprintf("next-%d", try)
		first.Stop()
		took := harness.Within(t, harness.Timeout, "the other operator to lead", func() error {
			if !strings.Contains(second.Log.From(0), leaseAcquiredText) {
				return harness.ErrNotYet
			}
			return nil
		})
		t.Logf("the other leads after %s", took.Round(time.Millisecond))
		if strings.Contains(first.Log.From(0)+second.Log.From(0), kindCollisionText) {
			t.Error("they share a Lease, and take each other for rivals")
		}
		s.Create(s.Webapp(name, map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
		s.ExpectReady(name)
		first, second = second, s.StartOperator(lead...)
		return took
	})
	if err := harness.Ready(s.Get("WebApp", "one")); err != nil {
		t.Errorf("the resource of the first leader is no longer ready: %v", err)
	}
}
