package reconcile_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	"operetta.dev/engine/status"
)

// bench is one resource of a small package, its lifecycle, and a clock that a test
// sets.
type bench struct {
	t          *testing.T
	memory     *memory.Cluster
	reconciler *reconcile.Reconciler
	program    *program.Program
	now        time.Time
	events     []rollout.Event
}

// benchHeader is the root of the packages of a bench.
const benchHeader = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: {size: int | *1, name: string | *"shop", ...}
cr: spec: versions.v1.spec
live: _
`

// configKey is the operator's configuration.
var configKey = types.NamespacedName{Namespace: "operators", Name: "settings"}

// newBench returns a bench with a resource of an empty spec.
func newBench(t *testing.T, body string) *bench {
	t.Helper()
	b := &bench{t: t, memory: memory.New(), now: time.Unix(1000, 0).UTC()}
	b.memory.Serve(shopKind.GroupKind(), cluster.Namespaced)
	b.restart()
	b.load(body)
	act(t, b.memory, map[string]any{})
	return b
}

// restart is a new process.
func (b *bench) restart() {
	b.reconciler = &reconcile.Reconciler{
		Kind: shopKind, Resources: b.memory, Cluster: b.memory, Recorder: b, Now: func() time.Time { return b.now },
		ConfigMap: configKey,
		Allow:     reconcile.Administrative,
	}
}

// Record implements reconcile.Recorder.
func (b *bench) Record(_ *unstructured.Unstructured, e rollout.Event) { b.events = append(b.events, e) }

// load replaces the package by the header and a body.
func (b *bench) load(body string) {
	b.t.Helper()
	files := fstest.MapFS{
		"shop/shop.cue": &fstest.MapFile{Data: []byte(benchHeader)},
		"shop/body.cue": &fstest.MapFile{Data: []byte("package shop\n" + body)},
	}
	snapshot, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.program, err = program.Load(snapshot); err != nil {
		b.t.Fatal(err)
	}
}

// step takes the resource one step further, and the clock with it. However it ends, it is not taken again at once.
func (b *bench) step() (time.Duration, error) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	again, err := b.reconciler.Reconcile(b.t.Context(), shopKey, b.program)
	if again != 0 && again < time.Millisecond {
		b.t.Errorf("it is to be reconciled again in %s, which has no end", again)
	}
	return again, err
}

// rest steps until nothing changes any more, and returns when it wants to come again.
func (b *bench) rest() time.Duration {
	b.t.Helper()
	for range 40 {
		before := len(b.memory.Changes())
		again, err := b.step()
		if err != nil {
			b.t.Fatal(err)
		}
		b.now = b.now.Add(5 * time.Second)
		b.memory.CollectGarbage()
		if len(b.memory.Changes()) == before {
			return again
		}
	}
	b.t.Fatal("it does not come to rest")
	return 0
}

// put writes an object as somebody else.
func (b *bench) put(yaml map[string]any) {
	b.t.Helper()
	if _, err := b.memory.Put("person", &unstructured.Unstructured{Object: yaml}); err != nil {
		b.t.Fatal(err)
	}
}

// settings is a ConfigMap with data.
func settings(namespace, name string, data map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data}
}

// find returns an object, or nil.
func (b *bench) find(kind, name string) *unstructured.Unstructured {
	for _, u := range b.memory.Objects() {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	return nil
}

// data returns a value of a ConfigMap, or "".
func (b *bench) data(name, key string) string {
	u := b.find("ConfigMap", name)
	if u == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(u.Object, "data", key)
	return s
}

// status returns the resource's status.
func (b *bench) status() map[string]any {
	u := b.find("Shop", shopKey.Name)
	if u == nil {
		return nil
	}
	s, _, _ := unstructured.NestedMap(u.Object, "status")
	return s
}

// condition returns "status reason" of a condition and its message.
func (b *bench) condition(kind string) (string, string) {
	list, _ := b.status()["conditions"].([]any)
	for _, c := range list {
		m, _ := c.(map[string]any)
		if m["type"] == kind {
			message, _ := m["message"].(string)
			return m["status"].(string) + " " + m["reason"].(string), message
		}
	}
	return "", ""
}

// expect compares the condition Ready and looks for parts of its message.
func (b *bench) expect(reason, want string, parts ...string) {
	b.t.Helper()
	got, message := b.condition(status.ConditionReady)
	if got != want {
		b.t.Errorf("%s: Ready is %q, want %q (%s)", reason, got, want, message)
	}
	for _, p := range parts {
		if !strings.Contains(message, p) {
			b.t.Errorf("%s: it says %q, want %q in it", reason, message, p)
		}
	}
}

// wipe takes the status away, as a restored backup does.
func (b *bench) wipe() {
	b.t.Helper()
	cr := b.find("Shop", shopKey.Name)
	delete(cr.Object, "status")
	if _, err := b.memory.Put("backup", cr); err != nil {
		b.t.Fatal(err)
	}
}

// heal makes a Deployment available, or not.
func (b *bench) heal(name string, available int64) {
	b.t.Helper()
	u := b.find("Deployment", name)
	u.Object["status"] = map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": available, "availableReplicas": available,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}
	if _, err := b.memory.Put("controller", u); err != nil {
		b.t.Fatal(err)
	}
}
