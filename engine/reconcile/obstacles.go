package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/verify"
)

// obstacles remembers what keeps the workloads of each resource from being ready; its zero
// value is ready for use.
type obstacles struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[cluster.Ref]*obstacle
}

// obstacle is what is known of one workload.
type obstacle struct {
	next  time.Time // when it is looked at
	looks int
	text  string
	// asked says that the present step has asked about it.
	asked bool
}

// below are the workloads of one resource, as a rollout asks about them.
type below struct {
	*state
}

// Of returns why a workload is not ready, for rollout.Engine.PodProblem.
func (b below) Of(ctx context.Context, workload *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		return ""
	}
	o := b.obstacles.about(b.key(), cluster.RefOf(workload).Identity(), b.Now())
	if due := b.Now().Before(o.next); due {
		return o.text
	}
	// It is repeated later, when a Secret may be another one, or not known any more.
	text := b.redactor.Text(b.glance(ctx, workload.GetNamespace(), labels))
	b.obstacles.looked(o, text, b.Now())
	return text
}

// glance is look for a caller that can do without: a pod that brings a fault of the operator
// to light must not stop the resource that it belongs to.
func (b below) glance(ctx context.Context, namespace string, labels map[string]string) (text string) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(b.log, &rollout.PanicError{Cause: cause, Stack: debug.Stack()})
		}
	}()
	return b.look(ctx, namespace, labels)
}

// look asks the API server what the pods of a workload wait for: one list, and a read for
// each claim of the first pod that is not ready. What may not be read is not said.
func (b below) look(ctx context.Context, namespace string, labels map[string]string) string {
	const enough = 20
	pods, err := b.Cluster.ListLive(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: namespace, Labels: labels, Limit: enough})
	if err != nil {
		b.log.V(1).Info("the pods of a workload that is not ready cannot be read", "error", err)
		return ""
	}
	slices.SortFunc(pods, func(x, y *unstructured.Unstructured) int { return strings.Compare(x.GetName(), y.GetName()) })
	for _, pod := range pods {
		why := verify.PodNotReadyReason(pod)
		if why == "" {
			continue
		}
		for _, name := range verify.MountedClaims(pod) {
			claim, err := b.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, Namespace: namespace, Name: name})
			if phase, _, _ := unstructured.NestedString(objectOf(claim), "status", "phase"); err == nil && phase != "Bound" {
				why += "; PersistentVolumeClaim " + name + unbound(claim, phase)
			}
		}
		return fmt.Sprintf("Pod %s: %s", pod.GetName(), why)
	}
	return ""
}

func objectOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// unbound says how far a claim is that has no volume.
func unbound(claim *unstructured.Unstructured, phase string) string {
	switch {
	case claim == nil:
		return " does not exist"
	case phase == "":
		return " is not bound"
	}
	return " is " + phase
}

// about returns what is known of a workload of a resource.
func (o *obstacles) about(key types.NamespacedName, ref cluster.Ref, now time.Time) *obstacle {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[types.NamespacedName]map[cluster.Ref]*obstacle{}
	}
	if o.of[key] == nil {
		o.of[key] = map[cluster.Ref]*obstacle{}
	}
	if o.of[key][ref] == nil {
		o.of[key][ref] = &obstacle{next: now.Add(looks[0])}
	}
	o.of[key][ref].asked = true
	return o.of[key][ref]
}

// looked notes what a look has shown.
func (o *obstacles) looked(at *obstacle, text string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at.looks = min(at.looks+1, len(looks)-1)
	at.next, at.text = now.Add(looks[at.looks]), text
}

// settle ends a step: what it has not asked about is ready or gone. It returns when to look
// again, or 0.
func (o *obstacles) settle(key types.NamespacedName, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due time.Duration
	for ref, at := range o.of[key] {
		if !at.asked {
			delete(o.of[key], ref)
			continue
		}
		at.asked = false
		due = earliest(due, max(time.Second, at.next.Sub(now)))
	}
	if len(o.of[key]) == 0 {
		delete(o.of, key)
	}
	return due
}
