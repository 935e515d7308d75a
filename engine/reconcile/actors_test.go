package reconcile_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
)

// act is one thing that a person does.
func act(t *testing.T, m *memory.Cluster, spec map[string]any) {
	t.Helper()
	ref := cluster.Ref{GroupVersionKind: shopKind, Namespace: shopKey.Namespace, Name: shopKey.Name}
	cr, err := m.GetLive(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if spec["deleted"] == true {
		if err := m.Delete(t.Context(), ref, cr.GetUID()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if cr == nil {
		cr = &unstructured.Unstructured{Object: map[string]any{}}
		cr.SetGroupVersionKind(shopKind)
		cr.SetNamespace(shopKey.Namespace)
		cr.SetName(shopKey.Name)
	}
	cr.Object["spec"] = spec
	if _, err := m.Put("person", cr); err != nil {
		t.Fatal(err)
	}
}

// playControllers does what the controllers of Kubernetes do.
func playControllers(t *testing.T, m *memory.Cluster) {
	t.Helper()
	makeAvailable(t, m)
	completeJobs(t, m)
}

// completeJobs does what the Job controller does, in the end.
func completeJobs(t *testing.T, m *memory.Cluster) {
	t.Helper()
	endJobs(t, m, "Complete")
}

func endJobs(t *testing.T, m *memory.Cluster, condition string) {
	t.Helper()
	for _, u := range objects(t, m, "Job") {
		putStatus(t, m, u, map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": "R", "message": "it ended"}}})
	}
}

// makeAvailable does what the controllers of Deployments and of budgets do.
func makeAvailable(t *testing.T, m *memory.Cluster) {
	t.Helper()
	for _, u := range objects(t, m, "PodDisruptionBudget") {
		putStatus(t, m, u, map[string]any{"observedGeneration": u.GetGeneration()})
	}
	for _, u := range objects(t, m, "Deployment") {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		putStatus(t, m, u, map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		})
	}
}

// putStatus writes the status of an object as a controller does: not if it is the same already.
func putStatus(t *testing.T, m *memory.Cluster, u *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	if reflect.DeepEqual(u.Object["status"], status) {
		return
	}
	u.Object["status"] = status
	if _, err := m.Put("controller", u); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, m *memory.Cluster, ref cluster.Ref) *unstructured.Unstructured {
	t.Helper()
	ref.Version = "v1"
	u, err := m.GetLive(t.Context(), ref)
	if err != nil || u == nil {
		t.Fatalf("reading %s: %v", ref, err)
	}
	return u
}

func objects(t *testing.T, m *memory.Cluster, kind string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, ref := range m.Refs() {
		if ref.Kind == kind {
			out = append(out, read(t, m, ref))
		}
	}
	return out
}
