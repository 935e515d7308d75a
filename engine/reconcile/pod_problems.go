package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/verify"
)

// podProblems remembers what keeps the workloads of a resource from being ready.
type podProblems struct {
	mu sync.Mutex
	of map[cluster.Ref]*podProblem
}

// A podProblem is what is known of the pods of one workload.
type podProblem struct {
	// next is when the pods are read again, checks how often they were, and text what they showed.
	next   time.Time
	checks int
	text   string
	// asked says that the present reconcile has asked about it.
	asked bool
}

// A podReader reads the pods of workloads that are not ready, for one reconcile.
type podReader struct {
	cluster  cluster.Cluster
	log      logr.Logger
	redactor *redact.Redactor
	now      func() time.Time
	problems *podProblems
}

// podProblem returns why a workload is not ready, for rollout.Engine.PodProblem, or "" if that is
// unknown. It reads the pods in growing intervals.
func (l podReader) podProblem(ctx context.Context, workload *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		return ""
	}
	known := l.problems.about(cluster.RefOf(workload).Identity(), l.now())
	if l.now().Before(known.next) {
		return known.text
	}
	text := ""
	// A pod that reveals a fault of the operator must not stop the resource that it belongs to.
	if fault := rollout.CatchPanic(func() { text = l.readPods(ctx, workload.GetNamespace(), labels) }); fault != nil {
		logPanic(l.log, fault)
	}
	// The text is redacted now: it is repeated later, when the Secret may be another one or unknown.
	text = l.redactor.Text(text)
	l.problems.recordCheck(known, text, l.now())
	return text
}

// readPods asks the API server what the pods of a workload wait for: one list, and a read for each
// claim of the newest pod that is not ready, which is the one that explain shows. It leaves out what the operator may not read.
func (l podReader) readPods(ctx context.Context, namespace string, labels map[string]string) string {
	pods, err := l.cluster.ListLive(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: namespace, Labels: labels, Limit: verify.PodsOfWorkload})
	if err != nil {
		l.log.V(1).Info("the pods of a workload that is not ready cannot be read", "error", err)
		return ""
	}
	pod := verify.NewestNotReadyPod(pods)
	if pod == nil {
		return ""
	}
	why := []string{verify.PodNotReadyReason(pod)}
	for _, name := range verify.MountedClaims(pod) {
		claim, err := l.cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, Namespace: namespace, Name: name})
		if err == nil {
			why = append(why, unbound(name, claim))
		}
	}
	return fmt.Sprintf("Pod %s: %s", pod.GetName(), strings.Join(why, ""))
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
func (p *podProblems) about(ref cluster.Ref, now time.Time) *podProblem {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[cluster.Ref]*podProblem{}
	}
	if p.of[ref] == nil {
		p.of[ref] = &podProblem{next: now.Add(podCheckIntervals[0])}
	}
	p.of[ref].asked = true
	return p.of[ref]
}

// recordCheck records what the pods have shown.
func (p *podProblems) recordCheck(at *podProblem, text string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.checks = min(at.checks+1, len(podCheckIntervals)-1)
	at.next, at.text = now.Add(podCheckIntervals[at.checks]), text
}

// endReconcile returns when to look again, or 0. A workload that the reconcile has not asked about is ready
// or gone, and is forgotten.
func (p *podProblems) endReconcile(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due time.Duration
	for ref, at := range p.of {
		if !at.asked {
			delete(p.of, ref)
			continue
		}
		at.asked = false
		due = rollout.ShortestWait(due, max(time.Second, at.next.Sub(now)))
	}
	return due
}
