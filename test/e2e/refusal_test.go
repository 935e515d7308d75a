package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestE6ObjectOfNobodyIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	theirs := s.ref("Deployment", "shop")
	theirs.Object["spec"] = podSpec("theirs")
	s.applyAs("platform-team", theirs)
	before := s.expectThat(theirs, "to be available", available)

	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	message := s.expectNotReady(cr, "OwnedByAnother", "web: ", "Deployment "+s.namespace+"/shop", "platform-team")
	t.Logf("Ready: %s", message)
	for range pokes {
		s.reconcileOnce("shop")
	}
	if after := s.get("Deployment", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the Deployment was changed: %s", encode(t, after.Object))
	}
	// A component is atomic: the one that may not have an object gets none.
	if u, err := s.find("Service", "shop"); u != nil || err != nil {
		t.Errorf("the Service of the refused component exists (error %v)", err)
	}
	if got := condition(s.get("WebApp", "shop"), "Stalled"); got["status"] != "True" {
		t.Errorf("Stalled is %v", got)
	}

	// No watch tells the operator that a stranger's object has gone.
	s.delete(before)
	began := time.Now()
	s.expectReady("shop")
	t.Logf("ready %s after the object was given up", since(began))
}

func TestE6ObjectOfAnotherResourceIsRefusedAndItsOwnerNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	owner := s.create(s.webapp("other", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("other")
	yes := true
	theirs := s.ref("ConfigMap", "shop")
	theirs.Object["data"] = map[string]any{"whose": "theirs"}
	theirs.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "WebApp", "name": "other", "uid": string(owner.GetUID()), "controller": yes,
	}}
	before := s.create(theirs)

	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25", "files": map[string]any{"index.html": "mine"}}))
	message := s.expectNotReady(cr, "OwnedByAnother", "config: ", "ConfigMap "+s.namespace+"/shop", "WebApp other")
	t.Logf("Ready: %s", message)
	for range pokes {
		s.reconcileOnce("shop")
	}
	if after := s.get("ConfigMap", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the ConfigMap was changed: %s", encode(t, after.Object))
	}
	if err := ready(s.get("WebApp", "other")); err != nil {
		t.Errorf("the owner was disturbed: %v", err)
	}
	if u, err := s.find("Deployment", "shop"); u != nil || err != nil {
		t.Errorf("the Deployment exists though what it depends on was refused (error %v)", err)
	}

	// Deleting the refused resource leaves what is not its own.
	s.delete(cr)
	s.expectGone(cr)
	if after := s.get("ConfigMap", "shop"); after.GetResourceVersion() != before.GetResourceVersion() {
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
	if n, _ := field(d, "status", "availableReplicas").(int64); n == 0 || field(d, "status", "observedGeneration") != d.GetGeneration() {
		return errNotYet
	}
	return nil
}
