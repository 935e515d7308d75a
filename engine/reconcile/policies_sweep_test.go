package reconcile_test

import (
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster/memory"
)

// treated is the workload of the sweep over policies: an object that is replaced as a
// whole, one that is created anew, one that is left behind, one that is taken from
// another controller, one with a finalizer of somebody else's, a number of replicas that
// is handed over, and the resource of another operator.
const treated = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: {size: int | *1, name: string | *"shop", auto: bool | *false}
cr: spec: versions.v1.spec
live: _

_config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, data: size: "\(cr.spec.size)"}

components: base: {
	objects: {
		whole: _config & {metadata: name: "whole"}
		fixed: _config & {metadata: name: "fixed"}
		kept: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-kept"}
		taken: _config & {metadata: name: "taken"}
	}
	policy: {
		whole: apply:  "replace"
		fixed: apply:  "recreateOnImmutable"
		kept: delete:  "orphan"
		taken: adopt:  true
	}
}
components: door: objects: service: {apiVersion: "v1", kind: "Service", metadata: name: cr.spec.name}
components: web: {
	dependsOn: {base: {}, door: {}}
	objects: deployment: {
		apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web"
		if !cr.spec.auto {
			spec: replicas: cr.spec.size
		}
		spec: paused: false
	}
}
components: part: {
	dependsOn: web: {}
	objects: part: {apiVersion: "example.com/v1", kind: "Part", metadata: name: cr.spec.name, spec: size: cr.spec.size}
}
`

// inner is the package of that other operator, whose objects go in an order.
const inner = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Part"
versions: v1: spec: size: int
cr: spec: versions.v1.spec
live: _

components: low: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-low", data: size: "\(cr.spec.size)"}
components: high: {dependsOn: low: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-high"}}
`

// treatedWorkloads are what of W1 to W4 does not begin as another one does.
var treatedWorkloads = map[string]workload{
	"W2 update":                {{}, {"size": int64(2)}},
	"W2 hand over":             {{"size": int64(2)}, {"size": int64(2), "auto": true}},
	"W3 and W4 rename, delete": {{}, {"size": int64(2), "name": "store"}, deleted},
}

func loadTreated(t *testing.T) scene {
	t.Helper()
	return scene{program: evaluator(t, treated), part: evaluator(t, inner), set: setTreated, play: guardDoors}
}

// setTreated prepares what the package meets: an object of another controller, and an
// API server that does not let one of its objects be changed.
func setTreated(t *testing.T, m *memory.Cluster) {
	t.Helper()
	boss := &unstructured.Unstructured{Object: settings("default", "boss", nil)}
	boss, err := m.Put("somebody", boss)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	taken := &unstructured.Unstructured{Object: settings("default", "taken", map[string]any{"theirs": "yes"})}
	taken.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.GetUID(), Controller: &yes}})
	if _, err := m.Put("somebody", taken); err != nil {
		t.Fatal(err)
	}
	m.SetAdmission(func(before, after *unstructured.Unstructured) error {
		if before == nil || after == nil || after.GetName() != "fixed" {
			return nil
		}
		was, _, _ := unstructured.NestedString(before.Object, "data", "size")
		is, _, _ := unstructured.NestedString(after.Object, "data", "size")
		if was == is {
			return nil
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "fixed", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
	})
}

// guardDoors does what a controller of load balancers does: a Service has its finalizer,
// and keeps it for a while when it is deleted.
func guardDoors(t *testing.T, m *memory.Cluster) {
	t.Helper()
	const guard, closing = "example.com/balancer", "example.com/closing"
	for _, u := range objects(t, m, "Service") {
		switch going := u.GetDeletionTimestamp() != nil; {
		case going && u.GetAnnotations()[closing] == "":
			u.SetAnnotations(map[string]string{closing: "yes"})
		case going:
			u.SetFinalizers(nil)
		case slices.Contains(u.GetFinalizers(), guard):
			continue
		default:
			u.SetFinalizers([]string{guard})
		}
		if _, err := m.Put("balancer", u); err != nil {
			t.Fatal(err)
		}
	}
}

// TestA1A2PoliciesSurviveACrashAfterEveryWrite is A1 and A2 for every way of writing an
// object, and for a deletion that goes through the resource of another operator.
func TestA1A2PoliciesSurviveACrashAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s := loadTreated(t)
	left, c := s.liveThrough(t, treatedWorkloads["W3 and W4 rename, delete"], fault{})
	var names []string
	for name := range left.State {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"ConfigMap default/boss", "ConfigMap default/shop-kept", "ConfigMap default/store-kept"}; !slices.Equal(names, want) {
		t.Fatalf("left behind without any fault: %v, want %v", names, want)
	}
	for verb, n := range c.seen.Verbs() {
		t.Logf("%s: %d", verb, n)
	}
	for _, verb := range []string{"apply", "replace", "delete", "write the status of", "set the finalizers of"} {
		if c.seen.Verbs()[verb] == 0 {
			t.Errorf("nothing is written by %s: the sweep shows nothing", verb)
		}
	}
	if _, c := s.liveThrough(t, treatedWorkloads["W2 hand over"], fault{}); c.seen.Verbs()["hand over"] == 0 {
		t.Error("nothing is relinquished: the sweep shows nothing")
	}
	s.sweep(t, treatedWorkloads)
}

// TestA3PoliciesLeakNothingWhenTheSpecChangesMeanwhile is A3 for those. Whether there is
// an object to be left behind, to be handed over or to be taken depends on how far the
// first process came.
func TestA3PoliciesLeakNothingWhenTheSpecChangesMeanwhile(t *testing.T) {
	t.Parallel()
	s := loadTreated(t)
	s.chance = []string{"-kept", "/taken"}
	some := maps.Clone(treatedWorkloads)
	delete(some, "W2 hand over")
	s.sweepAway(t, some)
}
