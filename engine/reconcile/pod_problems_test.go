package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
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
	b.reconciler.Cluster = pods{b.reconciler.Cluster, func(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string, limit int64) ([]*unstructured.Unstructured, error) {
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

// The pods cost a list each time.
func TestThePodsOfAWorkloadAreLookedAtEverLessOften(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: "web"}`)
	var intervals []time.Duration
	var last time.Time
	b.reconciler.Cluster = pods{b.reconciler.Cluster, func(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string, limit int64) ([]*unstructured.Unstructured, error) {
		intervals, last = append(intervals, b.now.Sub(last)), b.now
		return pending(ctx, kind, namespace, labels, limit)
	}}
	last = b.now.Add(time.Second) // the first step
	for range 100 {
		again, err := b.step()
		if err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(again - time.Second)
	}
	want := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, intervals[:min(len(want), len(intervals))]); diff != "" {
		t.Errorf("the intervals (-want +got):\n%s", diff)
	}
}

// claiming is a cluster whose one Pod has a claim.
type claiming struct {
	cluster.Cluster
	phase string
	err   error
}

// ListLive implements cluster.Cluster.
func (c claiming) ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	list, err := pending(ctx, s.Kind, s.Namespace, s.Labels, s.Limit)
	list[0].Object["spec"] = map[string]any{"volumes": []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-0"}}}}
	return list, err
}

// GetLive implements cluster.Cluster.
func (c claiming) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	switch {
	case ref.Kind != "PersistentVolumeClaim":
		return c.Cluster.GetLive(ctx, ref)
	case c.err != nil || c.phase == "gone":
		return nil, c.err
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": ref.Kind, "status": map[string]any{"phase": c.phase}}}, nil
}

func TestTheVolumesThatAPodWaitsForAreNamed(t *testing.T) {
	t.Parallel()
	const pod = "Pod web-0: the Pod is pending: no node was found for it: Unschedulable"
	for name, row := range map[string]struct {
		reason, phase string
		err           error
		want          string
	}{
		"no claim":                      {"somebody has deleted it", "gone", nil, "; PersistentVolumeClaim data-0 does not exist"},
		"a claim without a phase":       {"nobody has looked at it", "", nil, "; PersistentVolumeClaim data-0 is not bound"},
		"a claim that is pending":       {"there is no volume for it", "Pending", nil, "; PersistentVolumeClaim data-0 is Pending"},
		"a claim with a volume":         {"the pod does not wait for it", "Bound", nil, ""},
		"a claim that cannot be looked": {"the operator may not read it", "", errors.New("it is forbidden"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: "web"}`)
			b.reconciler.Cluster = claiming{b.reconciler.Cluster, row.phase, row.err}
			for range 2 {
				if _, err := b.step(); err != nil {
					t.Fatal(err)
				}
				b.now = b.now.Add(11 * time.Second)
			}
			if _, text := b.condition("Ready"); !strings.HasSuffix(text, pod+row.want) {
				t.Errorf("%s: it says %q, want %q at the end", row.reason, text, pod+row.want)
			}
		})
	}
}

func TestWhatAContainerLacksIsInTheStatus(t *testing.T) {
	t.Parallel()
	const pod = "Pod web-0: the Pod is pending: container web cannot be configured: "
	for name, row := range map[string]struct {
		reason, message string
		want            string
	}{
		"a Secret that does not exist": {"the status names what has to be made", `secret "login" not found`, pod + `secret "login" not found`},
		"a text without an end":        {"the API server has to accept the status", strings.Repeat("no ", status.MaxMessage), pod + "no no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: "web"}`)
			b.reconciler.Cluster = pods{b.reconciler.Cluster, func(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string, limit int64) ([]*unstructured.Unstructured, error) {
				list, err := pending(ctx, kind, namespace, labels, limit)
				list[0].Object["status"] = map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
					"name": "web", "state": map[string]any{"waiting": map[string]any{"reason": "CreateContainerConfigError", "message": row.message}},
				}}}
				return list, err
			}}
			for range 2 {
				if _, err := b.step(); err != nil {
					t.Fatal(err)
				}
				b.now = b.now.Add(11 * time.Second)
			}
			if _, text := b.condition("Ready"); !strings.Contains(text, row.want) || len(text) > status.MaxMessage {
				t.Errorf("%s: it says %q in %d bytes, want %q in it", row.reason, text, len(text), row.want)
			}
		})
	}
}
