package reconcile_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// annotate sets an annotation of the resource as a person does.
func annotate(t *testing.T, m *memory.Cluster, key, value string) {
	t.Helper()
	cr := read(t, m, cluster.Ref{GroupVersionKind: shopKind, Namespace: shopKey.Namespace, Name: shopKey.Name})
	cr.SetAnnotations(map[string]string{key: value})
	if _, err := m.Put("person", cr); err != nil {
		t.Fatal(err)
	}
}

// settled is a resource that has become ready.
func settled(t *testing.T) *disturbed {
	t.Helper()
	_, c := liveThrough(t, loadShop(t), workload{{}}, fault{})
	return c
}

// crStatus returns the resource's status.
func crStatus(t *testing.T, c *disturbed) map[string]any {
	t.Helper()
	cr := read(t, c.Cluster, cluster.Ref{GroupVersionKind: shopKind, Namespace: shopKey.Namespace, Name: shopKey.Name})
	s, _, _ := unstructured.NestedMap(cr.Object, "status")
	return s
}

func hasCondition(s map[string]any, kind, value string) bool {
	conditions, _ := s["conditions"].([]any)
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == kind && m["status"] == value {
			return true
		}
	}
	return false
}

func TestAPausedResourceIsLeftAloneAndSaysSo(t *testing.T) {
	t.Parallel()
	p, c := loadShop(t), settled(t)
	annotate(t, c.Cluster, reconcile.AnnotationPaused, "true")
	deployment := objects(t, c.Cluster, "Deployment")[0]
	if err := c.Cluster.Delete(t.Context(), cluster.RefOf(deployment), deployment.GetUID()); err != nil {
		t.Fatal(err)
	}
	settle(t, c, p, true)
	if n := len(objects(t, c.Cluster, "Deployment")); n != 0 {
		t.Error("a paused resource was repaired")
	}
	if s := crStatus(t, c); !hasCondition(s, status.ConditionPaused, "True") {
		t.Errorf("no condition says that it is paused: %v", s["conditions"])
	}

	annotate(t, c.Cluster, reconcile.AnnotationPaused, "false")
	settle(t, c, p, true)
	if n := len(objects(t, c.Cluster, "Deployment")); n != 1 {
		t.Error("it was not repaired after the pause")
	}
	if s := crStatus(t, c); hasCondition(s, status.ConditionPaused, "True") || !hasCondition(s, status.ConditionReady, "True") {
		t.Errorf("after the pause: %v", s["conditions"])
	}
}

func TestAPausedResourceCanBeDeleted(t *testing.T) {
	t.Parallel()
	p, c := loadShop(t), settled(t)
	annotate(t, c.Cluster, reconcile.AnnotationPaused, "true")
	act(t, c.Cluster, deleted)
	settle(t, c, p, true)
	if left := c.Refs(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAForcedReconcileIsAcknowledged(t *testing.T) {
	t.Parallel()
	p, c := loadShop(t), settled(t)
	annotate(t, c.Cluster, reconcile.AnnotationReconcileAt, "2026-01-01")
	settle(t, c, p, true)
	if got := crStatus(t, c)["lastHandledReconcileAt"]; got != "2026-01-01" {
		t.Errorf("got %v, want the annotation's value", got)
	}
}

func TestTheLogLevelOfOneResource(t *testing.T) {
	t.Parallel()
	p, c := loadShop(t), settled(t)
	lines := 0
	allow := []string{reconcile.AnnotationLogLevel}
	ctx := logr.NewContext(t.Context(), funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	step := func() int {
		lines = 0
		reconciler := newReconciler(c)
		reconciler.Allow = allow
		if _, err := reconciler.Reconcile(ctx, shopKey, p); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	if n := step(); n != 0 {
		t.Errorf("%d lines are logged at rest", n)
	}
	annotate(t, c.Cluster, reconcile.AnnotationLogLevel, "debug")
	if n := step(); n != 4 {
		t.Errorf("%d lines are logged, want one for each component", n)
	}
	allow = nil
	if n := step(); n != 0 {
		t.Errorf("%d lines are logged, although nobody allows it", n)
	}
}
