package e2e

import (
	"testing"
	"time"
)

// handoverLimit is how soon the next operator acts when the leader ends in order.
const handoverLimit = 2 * time.Second

func TestI5OneOfTwoOperatorsActsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lead := []string{packageOf("webapp"), "--leader-elect", "--leader-elect-namespace", s.namespace}
	first := s.operate(lead...)
	first.expectLog("Successfully acquired lease")
	second := s.operate(lead...)
	s.create(s.webapp("one", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.expectReady("one")
	if n := second.reconciles("webapp.example.com"); n != 0 {
		t.Errorf("the operator that does not lead has reconciled %d times", n)
	}
	first.stop()
	began := time.Now()
	second.expectLog("Successfully acquired lease")
	took := since(began)
	t.Logf("the other leads after %s", took)
	if took > handoverLimit {
		t.Errorf("the other leads after %s, not within %s", took, handoverLimit)
	}
	s.create(s.webapp("two", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	s.expectReady("two")
	s.settle()
	if err := ready(s.get("WebApp", "one")); err != nil {
		t.Errorf("the resource of the first leader is no longer ready: %v", err)
	}
}
