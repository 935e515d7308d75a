package rollout_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
)

// world is a cluster in memory with one package and one custom resource.
type world struct {
	t         *testing.T
	memory    *cluster.Memory
	cluster   cluster.Cluster
	program   *program.Program
	spec      map[string]any
	owner     plan.Owner
	inventory plan.Inventory
	finished  map[string]rollout.Finish
	patches   []patch.Patch
	subsystem func(context.Context, schema.GroupKind) (bool, error)
	// protect is called with what is stored before a write, if it is set.
	protect func(context.Context, rollout.Protection) error
	// protects counts how often the inventory was stored before a write.
	protects int
	seen     int
}

// header is the root of every package of these tests.
const header = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: {size: int | *1, on: bool | *true, name: string | *"shop"}
cr: spec: versions.v1.spec
live: _
`

// newWorld returns a world with a package made of the header and a body.
func newWorld(t *testing.T, body string) *world {
	t.Helper()
	w := &world{t: t, memory: cluster.NewMemory(), spec: map[string]any{}}
	w.cluster = w.memory
	w.owner = plan.Owner{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"},
		Namespace:        "default", Name: "shop", UID: "uid-cr",
	}
	w.load(body)
	return w
}

// load replaces the package.
func (w *world) load(body string) {
	w.t.Helper()
	files := fstest.MapFS{
		"shop/shop.cue": &fstest.MapFile{Data: []byte(header)},
		"shop/body.cue": &fstest.MapFile{Data: []byte("package shop\n" + body)},
	}
	snapshot, err := source.New(files, "shop", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.program, err = program.Load(snapshot)
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cr() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"name": "shop", "namespace": "default", "uid": "uid-cr"},
		"spec":     w.spec,
	}
}

// run runs one rollout and keeps its inventory, as the controller does.
func (w *world) run() (rollout.Result, error) {
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Parallel: 4, Subsystem: w.subsystem}
	result, err := e.Run(context.Background(), rollout.Input{
		Owner: w.owner, CR: w.cr(), Inventory: w.inventory,
		Finished: w.finished,
		Patches:  w.patches,
		Protect: func(ctx context.Context, p rollout.Protection) error {
			if w.protect != nil {
				if err := w.protect(ctx, p); err != nil {
					return err
				}
			}
			w.protects++
			w.inventory = p.Inventory
			return nil
		},
	})
	w.inventory, w.finished = result.Inventory, result.Finished
	return result, err
}

// mustRun is run without an error.
func (w *world) mustRun() rollout.Result {
	w.t.Helper()
	result, err := w.run()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// wrote returns what was written since the last call, each as "verb Kind name".
func (w *world) wrote() []string {
	all := w.memory.Changes()
	var out []string
	for _, c := range all[w.seen:] {
		out = append(out, fmt.Sprintf("%s %s %s", c.Verb, c.Ref.Kind, c.Ref.Name))
	}
	w.seen = len(all)
	return out
}

// expectWrites compares what was written since the last call. Components of one
// layer are applied at the same time, so their order is free.
func (w *world) expectWrites(reason string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(counts(want), counts(w.wrote())); diff != "" {
		w.t.Errorf("%s: writes (-want +got):\n%s", reason, diff)
	}
}

func counts(list []string) map[string]int {
	out := map[string]int{}
	for _, s := range list {
		out[s]++
	}
	return out
}

// change changes an object as somebody else.
func (w *world) change(kind, name string, f func(*unstructured.Unstructured)) {
	w.t.Helper()
	u := w.object(kind, name)
	if u == nil {
		w.t.Fatalf("no %s %s", kind, name)
	}
	f(u)
	if _, err := w.memory.Put("somebody", u); err != nil {
		w.t.Fatal(err)
	}
	w.wrote()
}

// object returns a live object, or nil.
func (w *world) object(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	for _, ref := range w.memory.Refs() {
		if ref.Kind != kind || ref.Name != name {
			continue
		}
		for _, version := range []string{"v1", "v2"} {
			ref.Version = version
			if u, err := w.memory.Read(context.Background(), ref); err == nil && u != nil {
				return u
			}
		}
	}
	return nil
}

// available makes a Deployment as available as it asks to be.
func (w *world) available(name string) {
	w.t.Helper()
	w.change("Deployment", name, func(u *unstructured.Unstructured) {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}
	})
}

// states returns "component: State Reason" for each component.
func states(r rollout.Result) []string {
	var out []string
	for _, c := range r.Completion.Components {
		out = append(out, fmt.Sprintf("%s: %s %s", c.Name, c.State, c.Reason))
	}
	return out
}

// expectStates compares the components' states.
func expectStates(t *testing.T, r rollout.Result, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, states(r)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// message returns what a component says.
func message(r rollout.Result, component string) string {
	for _, c := range r.Completion.Components {
		if c.Name == component {
			return c.Message
		}
	}
	return ""
}
