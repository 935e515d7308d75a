package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
)

// growthCounts are the numbers of resources whose cost is compared.
var growthCounts = []int{100, 300, 1000, 3000}

// maxSteps is how many reconciles a resource may take to be Ready.
const maxSteps = 10

// growth measures the processor time that each of many resources takes in memory, where no API server
// takes its share: it should not depend on how many there are. CUE evaluates each resource once, as with the default of
// operetta run, but in this process, where it takes no requests to a worker.
func growth(ctx context.Context, r *results, show func(string)) error {
	for _, n := range growthCounts {
		show(fmt.Sprint(n, " resources"))
		each, err := growTo(ctx, n)
		if err != nil {
			return err
		}
		r.add(nameOperetta, fmt.Sprint("growth_", n), milliseconds(each))
	}
	return nil
}

// growTo makes so many resources Ready, and returns the processor time of each.
func growTo(ctx context.Context, n int) (time.Duration, error) {
	snapshot, err := source.Loader{}.Folder("cue/webapp")
	if err != nil {
		return 0, err
	}
	p, err := program.Load(snapshot)
	if err != nil {
		return 0, err
	}
	m := memory.New()
	m.Serve(webApp.GroupKind(), cluster.Namespaced)
	r := &reconcile.Reconciler{Kind: p.GroupVersionKind(), Resources: m, Cluster: m, Recorder: nobody{}, Now: time.Now}
	w := &world{Cluster: m, reconciler: r, evaluated: evaluate.New(p, evaluate.Options{Templates: evaluate.TemplatesChecked})}
	before := processorTime()
	for i := range n {
		if err := w.makeReady(ctx, fmt.Sprintf("shop-%04d", i)); err != nil {
			return 0, err
		}
	}
	return (processorTime() - before) / time.Duration(n), nil
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A world is a cluster in memory with the operator.
type world struct {
	*memory.Cluster

	reconciler *reconcile.Reconciler
	evaluated  reconcile.Package
}

// makeReady creates a resource and reconciles it until it is Ready.
func (w *world) makeReady(ctx context.Context, name string) error {
	cr := resource(webApp, name, completeSpec())
	if _, err := w.Put("person", cr); err != nil {
		return err
	}
	for range maxSteps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := w.reconciler.Reconcile(ctx, types.NamespacedName{Namespace: namespace, Name: name}, w.evaluated); err != nil {
			return err
		}
		now, err := w.GetLive(ctx, cluster.RefOf(cr))
		if err != nil {
			return err
		}
		if isReady(now) {
			return nil
		}
		if err := w.serve(ctx, name); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is not Ready after %d reconciles", name, maxSteps)
}

// completeSpec is the spec of webAppSpec with the defaults that an API server fills in.
func completeSpec() map[string]any {
	spec := webAppSpec()
	spec["replicas"], spec["port"], spec["maxUnavailable"] = int64(3), int64(80), int64(1)
	spec["resources"] = map[string]any{"cpu": "100m", "memory": "128Mi"}
	spec["ingress"] = map[string]any{"enabled": true, "host": "shop.example.com", "path": "/"}
	spec["autoscaling"] = map[string]any{"enabled": true, "minReplicas": int64(1), "maxReplicas": int64(10), "targetCPU": int64(80)}
	return spec
}

// serve makes the objects of a resource healthy, as the controllers of their kinds would.
func (w *world) serve(ctx context.Context, name string) error {
	for kind, status := range healthy() {
		live, err := w.GetLive(ctx, cluster.Ref{GroupVersionKind: kind, Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		status["observedGeneration"] = live.GetGeneration()
		live.Object["status"] = status
		if _, err := w.Put("controller", live); err != nil {
			return err
		}
	}
	return nil
}

// healthy returns what the controllers of Kubernetes write in the end.
func healthy() map[schema.GroupVersionKind]map[string]any {
	one := int64(1)
	return map[schema.GroupVersionKind]map[string]any{
		deployments: {
			"replicas": one, "updatedReplicas": one, "readyReplicas": one, "availableReplicas": one,
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		},
		disruptionBudgets: {"currentHealthy": one, "desiredHealthy": int64(0), "disruptionsAllowed": one, "expectedPods": one},
	}
}

// nobody records no events.
type nobody struct{}

// Record implements reconcile.Recorder.
func (nobody) Record(*unstructured.Unstructured, rollout.Event) {}
