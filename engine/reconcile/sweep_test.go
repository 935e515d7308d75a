package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/reconcile"
	"operetta.dev/test/inline"
)

// shop is the workload of the sweeps: eight objects of six kinds in four layers,
// with a component that can be switched off, a kind that can be dropped and names
// that can change.
const shop = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _

#Spec: {
	size:    int | *1
	name:    string | *"shop"
	front:   bool | *true
	account: bool | *true
}

_meta: name: cr.spec.name

components: config: objects: {
	settings: {apiVersion: "v1", kind: "ConfigMap", metadata: _meta, data: size: "\(cr.spec.size)"}
	secret: {apiVersion: "v1", kind: "Secret", metadata: _meta, data: key: "c2VjcmV0"}
	if cr.spec.account {
		account: {apiVersion: "v1", kind: "ServiceAccount", metadata: _meta}
	}
}
components: web: {
	dependsOn: config: {}
	objects: {
		deployment: {
			apiVersion: "apps/v1", kind: "Deployment", metadata: _meta
			spec: {
				replicas: cr.spec.size
				selector: matchLabels: app: "shop"
				template: {
					metadata: labels: app: "shop"
					spec: containers: [{name: "web", image: "web:1"}]
				}
			}
		}
		service: {apiVersion: "v1", kind: "Service", metadata: _meta, spec: {selector: app: "shop", ports: [{port: 80}]}}
	}
	outputs: name: live.web.service.metadata.name
}
components: front: {
	when: cr.spec.front
	objects: ingress: {
		apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: _meta
		spec: defaultBackend: service: {name: components.web.outputs.name, port: number: 80}
	}
}
components: guard: {
	dependsOn: front: optional: true
	objects: {
		pdb: {apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: _meta, spec: maxUnavailable: 1}
		note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-note"}
	}
}
`

var (
	shopKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	partKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Part"}
	shopKey  = types.NamespacedName{Namespace: "default", Name: "my"}
)

// stride is how many writes a sweep goes on from one plan to the next: `make test` runs every
// plan in a stage of its own, and some of them with the other tests and with the race detector.
var stride = func() int {
	if os.Getenv("OPERETTA_TEST_SWEEP") != "" {
		return 1
	}
	return 31
}()

// A workload is what a person does to the resource, one thing after the other.
type workload []map[string]any

// deleted is the last thing a person does.
var deleted = map[string]any{"deleted": true}

// workloads are W1 to W4 of the reliability scenarios.
var workloads = map[string]workload{
	"W1 create":                     {{}},
	"W2 update":                     {{}, {"size": int64(2)}},
	"W3 rename every object":        {{}, {"name": "store"}},
	"W3 drop a kind":                {{}, {"account": false}},
	"W3 switch a component off":     {{}, {"front": false}},
	"W3 switch it on again":         {{"front": false}, {}},
	"W4 delete":                     {{}, deleted},
	"W4 delete while it rolls out":  {{"size": int64(3)}, {"size": int64(4), "name": "store"}, deleted},
	"W3 and W4 with another update": {{}, {"account": false, "size": int64(2)}, deleted},
}

// outcome is what the oracles compare: the end state, and how often each object was
// created and deleted.
type outcome struct {
	State  map[string]any
	Counts map[string]int
}

// A scene is what a workload is lived through in.
type scene struct {
	// program is shared by all processes of all plans, which evaluate the same sessions again and
	// again: what it remembers is that of one session, whoever asks.
	program *evaluate.Evaluator
	// part is the package of what the first one renders, or nil.
	part *evaluate.Evaluator
	// set prepares the cluster, and play is what its controllers do besides.
	set, play func(t *testing.T, m *memory.Cluster)
	// chance are the objects that are left by what was done on the way, and not by how
	// it ended, by the end of their name.
	chance []string
}

// liveThrough lives through a workload with a fault, and returns what came of it.
func liveThrough(t *testing.T, p *evaluate.Evaluator, w workload, f fault) (outcome, *disturbed) {
	t.Helper()
	return scene{program: p}.liveThrough(t, w, f)
}

func (s scene) liveThrough(t *testing.T, w workload, f fault) (outcome, *disturbed) {
	t.Helper()
	c := s.open(t, f)
	for i, spec := range w {
		act(t, c.Cluster, spec)
		s.settle(t, c, i == len(w)-1)
	}
	return observe(t, c.Cluster), c
}

// decided returns an end state without what depends on the way to it.
func (s scene) decided(o outcome) map[string]any {
	maps.DeleteFunc(o.State, func(name string, _ any) bool {
		return slices.ContainsFunc(s.chance, func(end string) bool { return strings.HasSuffix(name, end) })
	})
	return o.State
}

// open returns the cluster of a scene.
func (s scene) open(t *testing.T, f fault) *disturbed {
	t.Helper()
	c := newDisturbed(f)
	c.Serve(shopKind.GroupKind(), cluster.Namespaced)
	c.Serve(partKind.GroupKind(), cluster.Namespaced)
	if s.set != nil {
		s.set(t, c.Cluster)
	}
	return c
}

// settle lives through a scene of one package alone.
func settle(t *testing.T, c *disturbed, p *evaluate.Evaluator, last bool) {
	t.Helper()
	scene{program: p}.settle(t, c, last)
}

// settle steps until nothing changes any more, as the queue does: an error is
// tried again, and a dead process is started anew, at once or for the next thing
// that the person does.
func (s scene) settle(t *testing.T, c *disturbed, last bool) {
	t.Helper()
	if c.seen.Dead() {
		c.seen.Restart()
	}
	process := s.start(c)
	for range 80 {
		before := len(c.Changes())
		err := process.step(t)
		if c.seen.Dead() && c.fault.away && !last {
			return
		}
		if c.seen.Dead() {
			c.seen.Restart()
			process = s.start(c)
			continue
		}
		s.control(t, c.Cluster)
		if err == nil && len(c.Changes()) == before {
			return
		}
	}
	t.Fatal("it does not settle")
}

// control does what the controllers of the cluster do.
func (s scene) control(t *testing.T, m *memory.Cluster) {
	t.Helper()
	m.CollectGarbage()
	playControllers(t, m)
	if s.play != nil {
		s.play(t, m)
	}
}

// A process runs the operators of a scene.
type process struct {
	scene
	cluster      *disturbed
	shops, parts *reconcile.Reconciler
}

// start starts a new process.
func (s scene) start(c *disturbed) *process {
	p := &process{scene: s, cluster: c, shops: newReconciler(c), parts: newReconciler(c)}
	p.parts.Kind = partKind
	return p
}

// step takes every resource one step further.
func (p *process) step(t *testing.T) error {
	t.Helper()
	_, err := p.shops.Reconcile(t.Context(), shopKey, p.program)
	if p.part == nil {
		return err
	}
	failures := []error{err}
	for _, u := range objects(t, p.cluster.Cluster, partKind.Kind) {
		_, err := p.parts.Reconcile(t.Context(), types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, p.part)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// newReconciler is the engine of a new process. Its clock jumps, so that no progress is
// held back, and its writes have the same order every time.
func newReconciler(c *disturbed) *reconcile.Reconciler {
	now := time.Unix(0, 0)
	return &reconcile.Reconciler{
		Kind: shopKind, Resources: c.seen, Cluster: c.seen, Recorder: quiet{}, Parallel: 1,
		Subsystem: func(_ context.Context, k schema.GroupKind) (bool, error) { return k == partKind.GroupKind(), nil },
		Now: func() time.Time {
			now = now.Add(time.Minute)
			return now
		},
	}
}

// observe reads the end state without what differs from run to run, and the
// summary of creations and deletions.
func observe(t *testing.T, m *memory.Cluster) outcome {
	t.Helper()
	out := outcome{State: map[string]any{}, Counts: map[string]int{}}
	for _, ref := range m.Refs() {
		u := read(t, m, ref)
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "operetta.dev/applied") // it covers the owner's UID
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "operetta.dev/owner-uid")
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "operetta.dev/salt") // it is random
		unstructured.RemoveNestedField(u.Object, "metadata", "ownerReferences")
		maskTimes(u.Object)
		out.State[ref.String()] = u.Object
	}
	for _, change := range m.Changes() {
		if change.Operation != "update" {
			out.Counts[change.String()]++
		}
	}
	return out
}

// maskTimes removes what depends on how many writes came before, and in which order.
func maskTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "lastTransitionTime")
		delete(v, "digest")
		delete(v, "uid")
		delete(v, "observedGeneration")
		for _, k := range slices.Sorted(maps.Keys(v)) {
			maskTimes(v[k])
		}
		if entries, ok := v["objects"].([]any); ok {
			slices.SortFunc(entries, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case []any:
		for _, item := range v {
			maskTimes(item)
		}
	}
}

// evaluator loads a package of one file, and evaluates it as an operator does.
func evaluator(t *testing.T, text string) *evaluate.Evaluator {
	t.Helper()
	return evaluate.New(inline.Program(t, text), evaluate.Options{})
}

func loadShop(t *testing.T) *evaluate.Evaluator {
	t.Helper()
	return evaluator(t, shop)
}

// TestA1A2SurvivesACrashAfterEveryWrite is A1 and A2: the process dies after each
// single write, or the response of the write is lost, and the end is the same, with
// each object created and deleted as often as without the fault. A failing plan is
// replayed by the name of its subtest.
func TestA1A2SurvivesACrashAfterEveryWrite(t *testing.T) {
	t.Parallel()
	scene{program: loadShop(t)}.sweep(t, workloads)
}

// sweep lives through workloads with a crash after each write, and with the response
// of each write lost.
func (s scene) sweep(t *testing.T, all map[string]workload, oracles ...func(t *testing.T, c *disturbed)) {
	t.Helper()
	for name, w := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, undisturbed := s.liveThrough(t, w, fault{})
			t.Logf("%d writes, %d plans", undisturbed.seen.Writes(), 2*undisturbed.seen.Writes())
			for k := 1; k <= undisturbed.seen.Writes(); k += stride {
				for _, f := range []fault{crashAfter(k), loseAt(k)} {
					t.Run(f.String(), func(t *testing.T) {
						got, c := s.liveThrough(t, w, f)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("(-undisturbed +disturbed):\n%s", diff)
						}
						for _, o := range oracles {
							o(t, c)
						}
					})
				}
			}
		})
	}
}

// TestA3LeaksNothingWhenTheSpecChangesMeanwhile is A3: the process dies after each
// single write, and the spec is another when it comes back. What the dead one wrote
// and the new spec does not want has to go: no object may be forgotten.
func TestA3LeaksNothingWhenTheSpecChangesMeanwhile(t *testing.T) {
	t.Parallel()
	scene{program: loadShop(t)}.sweepAway(t, workloads)
}

// sweepAway lives through workloads with a crash after each write that lasts until the
// person has done the next thing.
func (s scene) sweepAway(t *testing.T, all map[string]workload) {
	t.Helper()
	for name, w := range all {
		if len(w) < 2 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, undisturbed := s.liveThrough(t, w, fault{})
			for k := 1; k <= undisturbed.seen.Writes(); k += stride {
				f := crashAfter(k)
				f.away = true
				t.Run(f.String(), func(t *testing.T) {
					got, _ := s.liveThrough(t, w, f)
					if diff := cmp.Diff(s.decided(want), s.decided(got)); diff != "" {
						t.Errorf("(-undisturbed +disturbed):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestA4SurvivesASecondCrash is A4: another crash while recovering from the first.
func TestA4SurvivesASecondCrash(t *testing.T) {
	t.Parallel()
	p := loadShop(t)
	w := workloads["W4 delete while it rolls out"]
	want, undisturbed := liveThrough(t, p, w, fault{})
	for k := 1; k <= undisturbed.seen.Writes(); k += stride {
		for j := 1; j <= 6; j++ {
			f := crashAfter(k, j)
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				got, _ := liveThrough(t, p, w, f)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-undisturbed +disturbed):\n%s", diff)
				}
			})
		}
	}
}
