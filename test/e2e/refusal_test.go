package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

func TestE6ObjectOfNobodyIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	theirs := s.Ref("Deployment", "shop")
	theirs.Object["spec"] = podSpec("theirs")
	s.applyAs("platform-team", theirs)
	before := s.ExpectObject(theirs, "to be available", available)

	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	message := s.ExpectNotReady(cr, "OwnedByAnother", "web: ", "Deployment "+s.Namespace+"/shop", "platform-team")
	t.Logf("Ready: %s", message)
	for range forcedPerCheck {
		s.reconcileOnce("shop")
	}
	if after := s.Get("Deployment", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the Deployment was changed: %s", harness.Encode(t, after.Object))
	}
	// A component is atomic: if one object is refused, none is written.
	if u, err := s.Lookup("Service", "shop"); u != nil || err != nil {
		t.Errorf("the Service of the refused component exists (error %v)", err)
	}
	if got := harness.Condition(s.Get("WebApp", "shop"), "Stalled"); got["status"] != "True" {
		t.Errorf("Stalled is %v", got)
	}

	// The operator has no watch for an object of another owner.
	s.Delete(before)
	began := time.Now()
	s.ExpectReady("shop")
	t.Logf("ready %s after the object was given up", harness.Elapsed(began))
}

func TestE6ObjectOfAnotherResourceIsRefusedAndItsOwnerNamed(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	owner := s.Create(s.Webapp("other", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("other")
	yes := true
	theirs := s.Ref("ConfigMap", "shop")
	theirs.Object["data"] = map[string]any{"whose": "theirs"}
	theirs.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "WebApp", "name": "other", "uid": string(owner.GetUID()), "controller": yes,
	}}
	before := s.Create(theirs)

	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "files": map[string]any{"index.html": "mine"}}))
	message := s.ExpectNotReady(cr, "OwnedByAnother", "config: ", "ConfigMap "+s.Namespace+"/shop", "WebApp other")
	t.Logf("Ready: %s", message)
	for range forcedPerCheck {
		s.reconcileOnce("shop")
	}
	if after := s.Get("ConfigMap", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the ConfigMap was changed: %s", harness.Encode(t, after.Object))
	}
	if err := harness.Ready(s.Get("WebApp", "other")); err != nil {
		t.Errorf("the owner was disturbed: %v", err)
	}
	if u, err := s.Lookup("Deployment", "shop"); u != nil || err != nil {
		t.Errorf("the Deployment exists though what it depends on was refused (error %v)", err)
	}

	// When the refused resource is deleted, objects that it does not own stay.
	s.Delete(cr)
	s.ExpectGone(cr)
	if after := s.Get("ConfigMap", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the ConfigMap was changed by the deletion of the refused resource")
	}
}

// podSpec returns the spec of a Deployment with one replica.
func podSpec(app string) map[string]any {
	labels := map[string]any{"app": app}
	return map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "any:1"}}},
		},
	}
}

func available(d *unstructured.Unstructured) error {
	if n, _ := harness.Field(d, "status", "availableReplicas").(int64); n == 0 || harness.Field(d, "status", "observedGeneration") != d.GetGeneration() {
		return harness.ErrNotYet
	}
	return nil
}
