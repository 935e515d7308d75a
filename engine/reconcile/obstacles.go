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
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/verify"
)

// obstacles remembers what keeps the workloads of a resource from being ready.
type obstacles struct {
	mu sync.Mutex
	of map[cluster.Ref]*obstacle
}

// An obstacle is what is known of one workload.
type obstacle struct {
	// next is when its pods are looked at again, looks how often they were, and text what that showed.
	next  time.Time
	looks int
	text  string
	// asked says that the present step has asked about it.
	asked bool
}

// below are the workloads of one resource, as a rollout asks about them.
type below struct{ *state }

// Of returns why a workload is not ready, for rollout.Engine.PodProblem.
func (b below) Of(ctx context.Context, workload *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		return ""
	}
	known := &b.memory.obstacles
	o := known.about(cluster.RefOf(workload).Identity(), b.Now())
	if b.Now().Before(o.next) {
		return o.text
	}
	// The text is redacted now: it is repeated later, when the Secret may be another one or unknown.
	text := b.redactor.Text(b.glance(ctx, workload.GetNamespace(), labels))
	known.looked(o, text, b.Now())
	return text
}

// glance is look without panics: a pod that reveals a fault of the operator must not stop the
// resource that it belongs to.
func (b below) glance(ctx context.Context, namespace string, labels map[string]string) (text string) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(b.log, &rollout.PanicError{Cause: cause, Stack: debug.Stack()})
		}
	}()
	return b.look(ctx, namespace, labels)
}

// look asks the API server what the pods of a workload wait for: one list, and a read for each
// claim of the first pod that is not ready. It leaves out what the operator may not read.
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
			if err == nil {
				why += unbound(name, claim)
			}
		}
		return fmt.Sprintf("Pod %s: %s", pod.GetName(), why)
	}
	return ""
}

// unbound says how far a claim is that has no volume; it is "" for one that has.
func unbound(name string, claim *unstructured.Unstructured) string {
	if claim == nil {
		return "; PersistentVolumeClaim " + name + " does not exist"
	}
	switch phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase"); phase {
	case "Bound":
		return ""
	case "":
		return "; PersistentVolumeClaim " + name + " is not bound"
	default:
		return "; PersistentVolumeClaim " + name + " is " + phase
	}
}

// about returns what is known of a workload.
func (o *obstacles) about(ref cluster.Ref, now time.Time) *obstacle {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[cluster.Ref]*obstacle{}
	}
	if o.of[ref] == nil {
		o.of[ref] = &obstacle{next: now.Add(looks[0])}
	}
	o.of[ref].asked = true
	return o.of[ref]
}

// looked records what a look at the pods has shown.
func (o *obstacles) looked(at *obstacle, text string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at.looks = min(at.looks+1, len(looks)-1)
	at.next, at.text = now.Add(looks[at.looks]), text
}

// endStep returns when to look again, or 0. A workload that the step has not asked about is ready
// or gone, and is forgotten.
func (o *obstacles) endStep(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due time.Duration
	for ref, at := range o.of {
		if !at.asked {
			delete(o.of, ref)
			continue
		}
		at.asked = false
		due = earliest(due, max(time.Second, at.next.Sub(now)))
	}
	return due
}
