package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/lifecycle"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
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
	shopKey  = types.NamespacedName{Namespace: "default", Name: "my"}
)

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

// errCrash is what every call answers once the process is dead, and errLost what a
// write answers that was carried out and whose response was lost.
var (
	errCrash = errors.New("the process is dead")
	errLost  = errors.New("timeout: the response was lost")
)

// A fault says what goes wrong at which write; 0 is never.
type fault struct {
	crashAfter []int
	loseAt     int
	// away means that the process stays dead until the person has done the next
	// thing.
	away bool
}

// String is the plan's name, by which a test replays it.
func (f fault) String() string {
	if f.loseAt > 0 {
		return fmt.Sprintf("response of write %d lost", f.loseAt)
	}
	parts := make([]string, len(f.crashAfter))
	for i, k := range f.crashAfter {
		parts[i] = fmt.Sprint(k)
	}
	name := "crash after write " + strings.Join(parts, " then ")
	if f.away {
		name += " and away for a while"
	}
	return name
}

// faulty is a cluster and store whose writes can go wrong.
type faulty struct {
	*cluster.Memory
	store  *lifecycle.MemoryStore
	writes int
	total  int
	fault  fault
	dead   bool
}

// write carries a write out and makes it go wrong when it is its turn.
func (f *faulty) write(do func() error) error {
	if f.dead {
		return errCrash
	}
	if err := do(); err != nil {
		return err
	}
	f.writes++
	f.total++
	if len(f.fault.crashAfter) > 0 && f.writes == f.fault.crashAfter[0] {
		f.dead = true
		return errCrash
	}
	if f.total == f.fault.loseAt {
		return errLost
	}
	return nil
}

// restart is a new process.
func (f *faulty) restart() {
	f.dead = false
	f.writes = 0
	f.fault.crashAfter = f.fault.crashAfter[1:]
}

func (f *faulty) Apply(ctx context.Context, o *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	err = f.write(func() error {
		out, err = f.Memory.Apply(ctx, o)
		return err
	})
	return out, err
}

func (f *faulty) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	return f.write(func() error { return f.Memory.Delete(ctx, ref, uid) })
}

func (f *faulty) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.dead {
		return nil, errCrash
	}
	return f.Memory.Get(ctx, ref)
}

func (f *faulty) Read(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.dead {
		return nil, errCrash
	}
	return f.Memory.Read(ctx, ref)
}

// faultyStore is the store of a faulty cluster.
type faultyStore struct{ *faulty }

func (s faultyStore) Get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if s.dead {
		return nil, errCrash
	}
	return s.store.Get(ctx, key)
}

func (s faultyStore) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	return s.write(func() error { return s.store.ApplyStatus(ctx, u) })
}

func (s faultyStore) ApplyFinalizers(ctx context.Context, u *unstructured.Unstructured) error {
	return s.write(func() error { return s.store.ApplyFinalizers(ctx, u) })
}

// quiet records nothing.
type quiet struct{}

func (quiet) Record(*unstructured.Unstructured, rollout.Event) {}

// outcome is what the oracles compare: the end state, and how often each object was
// created and deleted.
type outcome struct {
	State  map[string]any
	Counts map[string]int
}

// live lives through a workload with a fault, and returns what came of it.
func liveThrough(t *testing.T, p *program.Program, w workload, f fault) (outcome, *faulty) {
	t.Helper()
	c := &faulty{Memory: cluster.NewMemory(), fault: f}
	c.Serve(shopKind.GroupKind(), cluster.Namespaced)
	c.store = newStore(c.Memory)
	for i, spec := range w {
		act(t, c.Memory, spec)
		settle(t, c, p, i == len(w)-1)
	}
	return observe(t, c.Memory), c
}

func newStore(m *cluster.Memory) *lifecycle.MemoryStore {
	return &lifecycle.MemoryStore{Kind: shopKind, Memory: m}
}

// act is one thing that a person does.
func act(t *testing.T, m *cluster.Memory, spec map[string]any) {
	t.Helper()
	ref := cluster.Ref{GroupVersionKind: shopKind, Namespace: shopKey.Namespace, Name: shopKey.Name}
	cr, err := m.Read(t.Context(), ref)
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

// settle steps until nothing changes any more, as the queue does: an error is
// tried again, and a dead process is started anew, at once or for the next thing
// that the person does.
func settle(t *testing.T, c *faulty, p *program.Program, last bool) {
	t.Helper()
	if c.dead {
		c.restart()
	}
	l := newLife(c)
	for range 60 {
		before := len(c.Changes())
		_, err := l.Step(t.Context(), shopKey, p)
		if c.dead && c.fault.away && !last {
			return
		}
		if c.dead {
			c.restart()
			l = newLife(c)
			continue
		}
		collectGarbage(t, c.Memory)
		playControllers(t, c.Memory)
		if err == nil && len(c.Changes()) == before {
			return
		}
	}
	t.Fatal("it does not settle")
}

// newLife is the engine of a new process. Its clock jumps, so that no progress is
// held back.
func newLife(c *faulty) *lifecycle.Lifecycle {
	now := time.Unix(0, 0)
	return &lifecycle.Lifecycle{Kind: shopKind, Store: faultyStore{c}, Cluster: c, Recorder: quiet{}, Now: func() time.Time {
		now = now.Add(time.Minute)
		return now
	}}
}

// makeAvailable does what the controllers of Deployments and of budgets do.
func makeAvailable(t *testing.T, m *cluster.Memory) {
	t.Helper()
	for _, u := range objects(t, m, "PodDisruptionBudget") {
		u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration()}
		if _, err := m.Put("controller", u); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range objects(t, m, "Deployment") {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}
		if _, err := m.Put("controller", u); err != nil {
			t.Fatal(err)
		}
	}
}

// collectGarbage does what garbage collection does: an object whose owner is gone
// goes as well.
func collectGarbage(t *testing.T, m *cluster.Memory) {
	t.Helper()
	uids := map[types.UID]bool{}
	for _, ref := range m.Refs() {
		uids[read(t, m, ref).GetUID()] = true
	}
	for _, ref := range m.Refs() {
		u := read(t, m, ref)
		for _, owner := range u.GetOwnerReferences() {
			if !uids[owner.UID] {
				if err := m.Delete(t.Context(), ref, u.GetUID()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func read(t *testing.T, m *cluster.Memory, ref cluster.Ref) *unstructured.Unstructured {
	t.Helper()
	ref.Version = "v1"
	u, err := m.Read(t.Context(), ref)
	if err != nil || u == nil {
		t.Fatalf("reading %s: %v", ref, err)
	}
	return u
}

func objects(t *testing.T, m *cluster.Memory, kind string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, ref := range m.Refs() {
		if ref.Kind == kind {
			out = append(out, read(t, m, ref))
		}
	}
	return out
}

// observe reads the end state without what differs from run to run, and the
// summary of creations and deletions.
func observe(t *testing.T, m *cluster.Memory) outcome {
	t.Helper()
	out := outcome{State: map[string]any{}, Counts: map[string]int{}}
	for _, ref := range m.Refs() {
		u := read(t, m, ref)
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "operetta.dev/applied") // it covers the owner's UID
		unstructured.RemoveNestedField(u.Object, "metadata", "ownerReferences")
		maskTimes(u.Object)
		out.State[ref.String()] = u.Object
	}
	for _, change := range m.Changes() {
		if change.Verb != "update" {
			out.Counts[change.String()]++
		}
	}
	return out
}

// maskTimes removes what depends on how many writes came before.
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
	case []any:
		for _, item := range v {
			maskTimes(item)
		}
	}
}

func loadShop(t *testing.T) *program.Program {
	t.Helper()
	snapshot, err := source.New(fstest.MapFS{"shop/shop.cue": &fstest.MapFile{Data: []byte(shop)}}, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSurvivesACrashAfterEveryWrite is A1 and A2: the process dies after each
// single write, or the response of the write is lost, and the end is the same, with
// each object created and deleted as often as without the fault. A failing plan is
// replayed by the name of its subtest.
func TestSurvivesACrashAfterEveryWrite(t *testing.T) {
	t.Parallel()
	p := loadShop(t)
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, undisturbed := liveThrough(t, p, w, fault{})
			t.Logf("%d writes, %d plans", undisturbed.total, 2*undisturbed.total)
			for k := 1; k <= undisturbed.total; k += stride {
				for _, f := range []fault{{crashAfter: []int{k}}, {loseAt: k}} {
					t.Run(f.String(), func(t *testing.T) {
						got, _ := liveThrough(t, p, w, f)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("(-undisturbed +disturbed):\n%s", diff)
						}
					})
				}
			}
		})
	}
}

// TestLeaksNothingWhenTheSpecChangesMeanwhile is A3: the process dies after each
// single write, and the spec is another when it comes back. What the dead one wrote
// and the new spec does not want has to go: no object may be forgotten.
func TestLeaksNothingWhenTheSpecChangesMeanwhile(t *testing.T) {
	t.Parallel()
	p := loadShop(t)
	for name, w := range workloads {
		if len(w) < 2 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, undisturbed := liveThrough(t, p, w, fault{})
			for k := 1; k <= undisturbed.total; k += stride {
				f := fault{crashAfter: []int{k}, away: true}
				t.Run(f.String(), func(t *testing.T) {
					got, _ := liveThrough(t, p, w, f)
					if diff := cmp.Diff(want.State, got.State); diff != "" {
						t.Errorf("(-undisturbed +disturbed):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestSurvivesASecondCrash is A4: another crash while recovering from the first.
func TestSurvivesASecondCrash(t *testing.T) {
	t.Parallel()
	p := loadShop(t)
	w := workloads["W4 delete while it rolls out"]
	want, undisturbed := liveThrough(t, p, w, fault{})
	for k := 1; k <= undisturbed.total; k += stride {
		for j := 1; j <= 6; j++ {
			f := fault{crashAfter: []int{k, j}}
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
