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
	// next is when the pods are looked at again, looks how often they were, and text what that showed.
	next  time.Time
	looks int
	text  string
	// asked says that the present reconcile has asked about it.
	asked bool
}

// podLooks look at pods for one reconcile.
type podLooks struct {
	cluster  cluster.Cluster
	log      logr.Logger
	redactor *redact.Redactor
	now      func() time.Time
	problems *podProblems
}

// podProblem returns why a workload is not ready, for rollout.Engine.PodProblem, or "" if that is
// unknown. It looks at the pods in growing intervals.
func (l podLooks) podProblem(ctx context.Context, workload *unstructured.Unstructured) string {
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
	if fault := rollout.CatchPanic(func() { text = l.lookAtPods(ctx, workload.GetNamespace(), labels) }); fault != nil {
		logPanic(l.log, fault)
	}
	// The text is redacted now: it is repeated later, when the Secret may be another one or unknown.
	text = l.redactor.Text(text)
	l.problems.looked(known, text, l.now())
	return text
}

// lookAtPods asks the API server what the pods of a workload wait for: one list, and a read for each
// claim of the newest pod that is not ready, which is the one that explain shows. It leaves out what the operator may not read.
func (l podLooks) lookAtPods(ctx context.Context, namespace string, labels map[string]string) string {
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
		p.of[ref] = &podProblem{next: now.Add(looks[0])}
	}
	p.of[ref].asked = true
	return p.of[ref]
}

// looked records what a look at the pods has shown.
func (p *podProblems) looked(at *podProblem, text string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.looks = min(at.looks+1, len(looks)-1)
	at.next, at.text = now.Add(looks[at.looks]), text
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
