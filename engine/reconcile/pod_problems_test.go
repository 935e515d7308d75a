package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// pending is a Pod that no node was found for.
func pending(context.Context, schema.GroupVersionKind, string, map[string]string, int64) ([]*unstructured.Unstructured, error) {
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web-0", "namespace": "default"},
		"status": map[string]any{"phase": "Pending", "conditions": []any{
			map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
		}},
	}}}, nil
}

// pods is a cluster whose live lists are those of a function.
type pods struct {
	cluster.Cluster
	list func(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string, limit int64) ([]*unstructured.Unstructured, error)
}

// ListLive implements cluster.Cluster.
func (p pods) ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	return p.list(ctx, s.Kind, s.Namespace, s.Labels, s.Limit)
}

func TestThePodsOfAWorkloadAreLookedAtWhenItIsNotReadyForAWhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: "web"}`)
	looks := 0
	b.life.Cluster = pods{b.life.Cluster, func(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string, limit int64) ([]*unstructured.Unstructured, error) {
		looks++
		if looks == 2 {
			return nil, errors.New("it may not be read")
		}
		return pending(ctx, kind, namespace, labels, limit)
	}}
	says := func() string {
		t.Helper()
		again, err := b.step()
		if err != nil {
			t.Fatal(err)
		}
		if again == 0 || again > 5*time.Minute {
			t.Errorf("it is looked at again after %s", again)
		}
		_, message := b.condition("Ready")
		return message
	}
	if text := says(); looks != 0 || strings.Contains(text, "Pod") {
		t.Errorf("at once: %d looks, and it says %q", looks, text)
	}
	b.now = b.now.Add(11 * time.Second)
	if text := says(); looks != 1 || !strings.Contains(text, "Pod web-0: the Pod is pending: no node was found for it: Unschedulable") {
		t.Errorf("after 11 s: %d looks, and it says %q", looks, text)
	}
	for range 20 {
		says()
	}
	if looks != 1 {
		t.Errorf("each of 20 events cost a look: %d", looks)
	}
	for range 60 {
		b.now = b.now.Add(time.Minute)
		says()
	}
	if looks > 16 {
		t.Errorf("an hour cost %d looks, want one in five minutes", looks)
	}
	b.heal("web", 1)
	if again, err := b.step(); err != nil || again != 0 {
		t.Errorf("it is ready, and looked at again after %s (error %v)", again, err)
	}
}
