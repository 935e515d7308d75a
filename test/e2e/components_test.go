package e2e

import (
	"testing"
	"time"
)

func TestIngressIsCreatedAndDeletedAsItIsSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	for range 2 {
		from, began := mark(t), time.Now()
		s.patch(cr, spec(map[string]any{"ingress": map[string]any{"enabled": true, "host": "shop.example.com"}}))
		s.expectReady("shop")
		s.get("Ingress", "shop")
		t.Logf("on: ready after %s; writes: %s", since(began), s.operatorRequests(from).mutating())

		from, began = mark(t), time.Now()
		s.patch(cr, spec(map[string]any{"ingress": map[string]any{"enabled": false}}))
		got := s.expectReady("shop")
		if u, err := s.find("Ingress", "shop"); u != nil || err != nil {
			t.Errorf("Ready, but the Ingress exists (error %v)", err)
		}
		if state := component(got, "ingress"); state["state"] != "Excluded" {
			t.Errorf("the component is %v", state)
		}
		t.Logf("off: ready after %s; writes: %s", since(began), s.operatorRequests(from).mutating())
	}
	s.expectEvent("shop", "Deleted", "Ingress "+s.namespace+"/shop")
}

func TestF1ComponentWaitsForItsDependencyAndSaysForWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{
		"image": "nginx:1.25", "replicas": int64(2),
		// More than any node has: the pods stay pending.
		"resources": map[string]any{"cpu": "640"},
		"ingress":   map[string]any{"enabled": true},
	}))
	message := s.expectNotReady(cr, "NotReady", "web: ", "verify.available", "web.cue:", "is 0, wanted >= 2")
	t.Logf("Ready: %s", message)
	waiting := component(s.get("WebApp", "shop"), "ingress")
	t.Logf("ingress: %v", waiting)
	text, _ := waiting["message"].(string)
	if waiting["state"] != "Waiting" || !containsAll(text, []string{"waiting for web to be verified", "verify.available", "web.cue:", "is 0, wanted >= 2"}) {
		t.Errorf("the component ingress is %v", waiting)
	}
	if u, err := s.find("Ingress", "shop"); u != nil || err != nil {
		t.Errorf("the Ingress exists before the servers serve (error %v)", err)
	}
	// An order of creation alone does not wait.
	s.expectThat(s.ref("PodDisruptionBudget", "shop"), "to exist", exists)

	s.patch(cr, spec(map[string]any{"resources": map[string]any{"cpu": "100m"}}))
	s.expectReady("shop")
	s.get("Ingress", "shop")
}
