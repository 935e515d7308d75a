package rollout_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	"operetta.dev/test/clustertest"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// TestMain runs these tests on the kind of cluster that clustertest is told to: in
// memory, or on an API server.
func TestMain(m *testing.M) { os.Exit(clustertest.Main(m, shopKind)) }

// The kinds of these tests' objects.
var (
	shopKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	kinds    = map[string]schema.GroupVersionKind{
		"ConfigMap":  {Version: "v1", Kind: "ConfigMap"},
		"Secret":     {Version: "v1", Kind: "Secret"},
		"Service":    {Version: "v1", Kind: "Service"},
		"Deployment": {Group: "apps", Version: "v1", Kind: "Deployment"},
		"Job":        {Group: "batch", Version: "v1", Kind: "Job"},
		"Pod":        {Version: "v1", Kind: "Pod"},
	}
)

// world is a site of a cluster with one package and one custom resource.
type world struct {
	t    *testing.T
	site *clustertest.Site
	// cluster is what the engine is given: the site's, or one that is worse.
	cluster   cluster.Cluster
	program   *program.Program
	spec      map[string]any
	owner     ownership.Owner
	inventory ownership.Inventory
	finished  map[string]rollout.HookState
	patches   []patch.Patch
	subsystem func(context.Context, schema.GroupKind) (bool, error)
	// refers is told which inputs a rollout refers to; it may be nil.
	refers func(owner types.NamespacedName, inputs []program.Input, failed bool)
	// ended is what the engine is told of objects that have ended and are gone.
	ended func(cluster.Ref) *unstructured.Unstructured
	// asked says that somebody asks for each rollout.
	asked bool
	// protect is called with what is stored before a write, if it is set.
	protect func(context.Context, rollout.WriteAhead) error
	// protects counts how often the inventory was stored before a write.
	protects int
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

// What an API server takes for a Deployment and a Job.
_pod: {metadata: labels: app: "shop", spec: {containers: [{name: "main", image: "main:1"}], ...}}
_deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: {name: string, ...}, spec: {selector: matchLabels: app: "shop", template: _pod, ...}}
_job: {apiVersion: "batch/v1", kind: "Job", metadata: {name: string, ...}, spec: {template: _pod & {spec: restartPolicy: "Never"}, ...}}
`

// newWorld returns a world with a package made of the header and a body.
func newWorld(t *testing.T, body string) *world {
	t.Helper()
	w := newResource(t, clustertest.New(t), "shop")
	w.load(body)
	return w
}

// newResource returns a world with a custom resource on a site. It is really there: the
// garbage collector takes what belongs to one that is not.
func newResource(t *testing.T, site *clustertest.Site, name string) *world {
	t.Helper()
	w := &world{t: t, site: site, cluster: site, spec: map[string]any{}}
	w.owner = ownership.Owner{Ref: cluster.Ref{GroupVersionKind: shopKind, Namespace: site.Namespace, Name: name}}
	w.owner.UID = site.Put("person", object(shopKind, site.Namespace, name)).GetUID()
	w.wrote()
	return w
}

// object returns an object with nothing but its identity.
func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// load replaces the package.
func (w *world) load(body string) {
	w.t.Helper()
	files := fstest.MapFS{
		"shop/shop.cue": &fstest.MapFile{Data: fmt.Appendf(nil, "%s_own: %q\n", header, w.site.Kind("").GroupVersion())},
		"shop/body.cue": &fstest.MapFile{Data: []byte("package shop\n" + body)},
	}
	snapshot, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		w.t.Fatal(err)
	}
	w.program, err = inline.Load(snapshot)
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cr() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"name": w.owner.Name, "namespace": w.owner.Namespace, "uid": string(w.owner.UID)},
		"spec":     w.spec,
	}
}

// run runs one rollout and keeps its inventory, as the controller does.
func (w *world) run() (rollout.Result, error) {
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach(), MayRender: w.program.MayRender, Parallel: 4, Subsystem: w.subsystem, FinishedObject: w.ended, WatchInputs: w.refers}
	ctx, cancel := w.deadline()
	defer cancel()
	result, err := e.Run(ctx, rollout.Input{
		Owner: w.owner, CR: w.cr(), Inventory: w.inventory,
		HookStates: w.finished,
		Requested:  w.asked,
		Patches:    w.patches,
		StoreWriteAhead: func(ctx context.Context, p rollout.WriteAhead) error {
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
	w.inventory, w.finished = result.Inventory, result.HookStates
	return result, err
}

// deadline bounds a rollout: one that hangs has failed.
func (w *world) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), machine.Patience)
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
	w.t.Helper()
	var out []string
	for _, e := range w.site.Events() {
		out = append(out, fmt.Sprintf("%s %s %s", e.Operation, e.Ref.Kind, e.Ref.Name))
	}
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
	w.put("somebody", u)
}

// put writes an object as somebody else.
func (w *world) put(manager string, u *unstructured.Unstructured) {
	w.t.Helper()
	w.site.Put(manager, u)
	w.wrote()
}

// delete deletes an object as somebody else.
func (w *world) delete(u *unstructured.Unstructured) {
	w.t.Helper()
	if u == nil {
		w.t.Fatal("there is nothing to delete")
	}
	w.site.Remove(u)
	w.wrote()
}

// object returns a live object, or nil.
func (w *world) object(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	return w.site.Find(w.kind(kind), name)
}

// all returns the objects of a kind.
func (w *world) all(kind string) []*unstructured.Unstructured {
	w.t.Helper()
	return w.site.List(w.kind(kind))
}

// kind returns a kind by its name: one that is always served, or one of the site's own.
func (w *world) kind(name string) schema.GroupVersionKind {
	if kind, ok := kinds[name]; ok {
		return kind
	}
	return w.site.Kind(name)
}

// teardown deletes what is in the inventory, and keeps what is left of it.
func (w *world) teardown() (rollout.Result, error) {
	ctx, cancel := w.deadline()
	defer cancel()
	result, err := rollout.Teardown(ctx, w.cluster, w.owner, w.inventory)
	w.inventory = result.Inventory
	return result, err
}

// mustTeardown is teardown without an error.
func (w *world) mustTeardown() rollout.Result {
	w.t.Helper()
	result, err := w.teardown()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// available makes a Deployment as available as it asks to be.
func (w *world) available(name string) {
	w.t.Helper()
	w.change("Deployment", name, func(u *unstructured.Unstructured) {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
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
