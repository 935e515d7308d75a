package rollout_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// accountable is a cluster that takes writes only of what the stored inventory has.
type accountable struct {
	cluster.Cluster

	w *world
	// writes counts them.
	writes atomic.Int64
}

func (a *accountable) account(o *unstructured.Unstructured) {
	a.writes.Add(1)
	if _, _, known := a.w.inventory.Find(cluster.RefOf(o), a.w.owner.Namespace); !known {
		a.w.t.Errorf("%s was written, and no inventory that was stored before has it: a crash would leak it", cluster.RefOf(o))
	}
}

// Apply implements cluster.Cluster.
func (a *accountable) Apply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	a.account(o)
	return a.Cluster.Apply(ctx, o)
}

// Replace implements cluster.Cluster.
func (a *accountable) Replace(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	a.account(o)
	return a.Cluster.Replace(ctx, o)
}

// late is a package that knows what its objects are called bit by bit: the name of
// one rests on what the API server answered to another.
const late = phases + `
components: first: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "first"}
components: second: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "second-\(live.first.o.metadata.uid)"}
components: third: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "third-\(live.second.o.metadata.uid)"}
components: whole: {
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "whole", data: size: "\(cr.spec.size)"}
	policy: o: apply: "replace"
}
`

// turns are what happens to a resource of that package.
var turns = []struct {
	name string
	act  func(w *world) error
}{
	{"it is created", func(w *world) error { return errorOf(w.run()) }},
	{"it is edited", func(w *world) error {
		w.available("shop")
		w.spec["size"] = int64(2)
		return errorOf(w.run())
	}},
	{"it becomes healthy", func(w *world) error {
		w.end("Complete")
		w.available("shop")
		return errorOf(w.run())
	}},
	{"a component fails", func(w *world) error {
		w.stall()
		return errorOf(w.run())
	}},
	{"everything gets another name", func(w *world) error {
		w.spec["name"] = "store"
		return errorOf(w.run())
	}},
	{"it is deleted", func(w *world) error {
		e := &rollout.Engine{Package: w.program, Cluster: w.cluster}
		result, _, err := e.BeforeDelete(context.Background(), rollout.Input{
			Owner: w.owner, CR: w.cr(), Inventory: w.inventory, HookStates: w.finished,
			StoreWriteAhead: func(ctx context.Context, p rollout.WriteAhead) error {
				if w.protect != nil {
					if err := w.protect(ctx, p); err != nil {
						return err
					}
				}
				w.inventory = p.Inventory
				return nil
			},
		})
		w.inventory, w.finished = result.Inventory, result.HookStates
		return err
	}},
}

func errorOf(_ rollout.Result, err error) error { return err }

func TestA3NothingIsWrittenThatTheStoredInventoryDoesNotHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, late)
	a := &accountable{Cluster: w.site, w: w}
	w.cluster = a
	for _, turn := range turns {
		before := a.writes.Load()
		if err := turn.act(w); err != nil {
			t.Fatalf("%s: %v", turn.name, err)
		}
		if a.writes.Load() == before {
			t.Errorf("%s, and nothing was written: the test shows nothing", turn.name)
		}
	}
	for _, name := range []string{"second-", "third-"} {
		if !strings.Contains(strings.Join(w.names("ConfigMap"), " "), name) {
			t.Errorf("no %s is there: %v", name, w.names("ConfigMap"))
		}
	}
}

// names returns the names of the objects of a kind.
func (w *world) names(kind string) []string {
	var out []string
	for _, u := range w.all(kind) {
		out = append(out, u.GetName())
	}
	return out
}

// errStore is what a store answers that is away.
var errStore = errors.New("the status cannot be written")

func TestA3NothingIsWrittenWhenTheInventoryCannotBeStored(t *testing.T) {
	t.Parallel()
	failures := 0
	w := newWorld(t, late)
	a := &accountable{Cluster: w.site, w: w}
	w.cluster = a
	for _, turn := range turns {
		// The store takes nothing at first, and then one inventory at a time.
		for takes := 0; ; takes = 1 {
			stored := 0
			w.protect = func(context.Context, rollout.WriteAhead) error {
				if stored++; stored > takes {
					return errStore
				}
				return nil
			}
			err := turn.act(w)
			if err == nil {
				break
			}
			if failures++; !errors.Is(err, errStore) || failures > 50 {
				t.Fatalf("%s: %v", turn.name, err)
			}
		}
	}
	if t.Logf("the store failed %d times", failures); failures < 6 {
		t.Errorf("the store failed only %d times: the test shows nothing", failures)
	}
	if !strings.Contains(strings.Join(w.names("ConfigMap"), " "), "third-") {
		t.Errorf("it did not get to its end: %v", w.names("ConfigMap"))
	}
}

// The status before the first write says of what is in sync what the one after the last will say of it.
func TestTheStatusBeforeTheFirstWriteKnowsWhatWasAppliedAndFailed(t *testing.T) {
	t.Parallel()
	const body = `
components: web: objects: o: _deployment & {metadata: name: "shop", spec: replicas: 1}
components: after: {dependsOn: web: until: "applied", objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "after"}}
`
	w := newWorld(t, body)
	w.mustRun()
	w.stall()
	expectStates(t, w.mustRun(), "web: Failed ObjectFailed", "after: Verified Verified")
	var before []rollout.Result
	w.protect = func(_ context.Context, p rollout.WriteAhead) error {
		before = append(before, rollout.Result{Completion: p.Preview})
		return nil
	}
	w.load(body + `components: more: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "more"}`)
	after := w.mustRun()
	if len(before) != 1 {
		t.Fatalf("it was stored %d times before a write, want once", len(before))
	}
	expectStates(t, before[0], "web: Failed ObjectFailed", "after: Verified Verified", "more: Applied Progressing")
	expectStates(t, after, "web: Failed ObjectFailed", "after: Verified Verified", "more: Verified Verified")
}
