package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// panics panic with the canary at one call.
type panics string

func (p panics) at(call string) {
	if string(p) == call {
		panic("cannot take " + canary)
	}
}

// The parts of a lifecycle one call of which panics.
type (
	fragileCluster struct {
		cluster.Cluster
		panics
	}
	fragileStore struct {
		cluster.Cluster
		panics
	}
	fragilePatches struct {
		cluster.Cluster
		panics
	}
	fragileRecorder struct {
		reconcile.Recorder
		panics
	}
	fragilePackage struct {
		reconcile.Package
		panics
	}
)

func (f fragileCluster) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	f.at("Get " + ref.Name)
	return f.Cluster.GetCached(ctx, ref)
}

func (f fragileCluster) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	f.at("Read " + ref.Name)
	return f.Cluster.GetLive(ctx, ref)
}

func (f fragileCluster) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	f.at("Apply " + u.GetName())
	return f.Cluster.Apply(ctx, u)
}

func (f fragileCluster) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	f.at("Delete " + ref.Name)
	return f.Cluster.Delete(ctx, ref, uid)
}

func (f fragileRecorder) Record(u *unstructured.Unstructured, e rollout.Event) {
	f.at("Record")
	f.Recorder.Record(u, e)
}

func (f fragilePatches) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	f.at("List")
	return f.Cluster.ListCached(ctx, which)
}

func (f fragilePackage) Evaluate(s program.Session) (program.Rollout, error) {
	f.at("Evaluate")
	return f.Package.Evaluate(s)
}

func (f fragileStore) ApplyFinalizers(ctx context.Context, u *unstructured.Unstructured) error {
	f.at("ApplyFinalizers")
	return f.Cluster.ApplyFinalizers(ctx, u)
}

// sturdy has two components beside each other, one of which waits for nothing, and an
// object elsewhere, so that there is a finalizer.
const sturdy = `
reach: ConfigMap: namespaces: elsewhere: true
components: bad: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bad", data: size: "\(cr.spec.size)"}
components: good: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "good", data: size: "\(cr.spec.size)"}
components: far: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "far", namespace: "elsewhere"}}
hooks: afterDeploy: told: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "told"}
`

func TestAPanicInAStepIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		call   string
		begin  func(*bench)
		// good says whether what is beside it was changed all the same.
		good bool
	}{
		"in a component":           {"C: the others of its layer are applied", "Apply bad", func(*bench) {}, true},
		"in a read of many":        {"a goroutine of its own must not end the process", "Get bad", func(*bench) {}, false},
		"in a look before a write": {"it is judged beside others", "Read bad", func(b *bench) { b.remove("ConfigMap", "bad") }, true},
		"in an evaluation":         {"the patch library was seen to panic there", "Evaluate", func(*bench) {}, false},
		"in the patches":           {"they are what a tenant writes", "List", func(*bench) {}, false},
		"in an event":              {"what was done before stays done", "Record", func(*bench) {}, true},
		"in a finalizer":           {"its objects are safe in the inventory", "ApplyFinalizers", func(b *bench) { b.unfinalize() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, sturdy)
			b.memory.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
			b.rest()
			b.expect("it begins well", "True Ready")
			act(t, b.memory, map[string]any{"size": int64(2)})
			row.begin(b)
			at := panics(row.call)
			b.reconciler.Cluster, b.reconciler.Resources = fragileCluster{b.memory, at}, fragileStore{b.memory, at}
			b.reconciler.Patches, b.reconciler.Recorder = fragilePatches{b.memory, at}, fragileRecorder{b, at}

			var log strings.Builder
			ctx := logr.NewContext(t.Context(), funcr.NewJSON(func(line string) { log.WriteString(line + "\n") }, funcr.Options{}))
			_, err := b.reconciler.Reconcile(ctx, shopKey, fragilePackage{b.program, at})
			if err == nil {
				t.Error("it is not tried again")
			}
			b.expect(row.reason, "False InternalError", "its log says where")
			if stalled, _ := b.condition(status.ConditionStalled); stalled != "True InternalError" {
				t.Errorf("Stalled is %s", stalled)
			}
			if said := b.said() + fmt.Sprint(err); strings.Contains(said, "goroutine") || strings.Contains(said, "cannot take") {
				t.Errorf("%s: it says more than it should: %s", row.reason, said)
			}
			if !strings.Contains(log.String(), "cannot take") || !strings.Contains(log.String(), "panics.at") {
				t.Errorf("the log does not say where: %s", log.String())
			}
			if got := b.data("good", "size") == "2"; got != row.good {
				t.Errorf("%s: what is beside it was changed: %v", row.reason, got)
			}
			inventory := fmt.Sprint(b.status()["inventory"])
			for _, object := range []string{"bad", "good", "far"} {
				if !strings.Contains(inventory, object) {
					t.Errorf("%s is lost: %s", object, inventory)
				}
			}
			b.restart()
			b.rest()
			b.expect("it passes", "True Ready")
		})
	}
}

// unfinalize takes the engine's finalizer away as somebody else.
func (b *bench) unfinalize() {
	b.t.Helper()
	cr := b.find("Shop", shopKey.Name)
	cr.SetFinalizers(nil)
	b.put(cr.Object)
}

func TestAPanicInATeardownIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(*bench, context.Context, reconcile.Package) error{
		"with its package": func(b *bench, ctx context.Context, p reconcile.Package) error {
			_, err := b.reconciler.Reconcile(ctx, shopKey, p)
			return err
		},
		"without a package": func(b *bench, ctx context.Context, _ reconcile.Package) error {
			_, err := b.reconciler.ReconcilePackageMissing(ctx, shopKey)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, sturdy)
			b.rest()
			act(t, b.memory, deleted)
			b.now = b.now.Add(time.Minute)
			b.reconciler.Cluster = fragileCluster{b.memory, "Delete bad"}
			if err := step(b, t.Context(), b.program); err == nil {
				t.Error("it is not tried again")
			}
			b.expect("it is held up", "False InternalError", "its log says where")
			b.restart()
			for range 10 {
				if err := step(b, t.Context(), b.program); err != nil {
					t.Fatal(err)
				}
				b.now = b.now.Add(10 * time.Second)
			}
			if b.find("Shop", shopKey.Name) != nil || b.find("ConfigMap", "far") != nil {
				t.Errorf("it is not gone: %s", b.said())
			}
		})
	}
}

func TestAPodThatMakesTheLookPanicStopsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: selector: matchLabels: app: "web"}`)
	b.reconciler.Cluster = pods{b.reconciler.Cluster, func(context.Context, schema.GroupVersionKind, string, map[string]string, int64) ([]*unstructured.Unstructured, error) {
		panic("an odd pod")
	}}
	b.rest()
	b.pass(11 * time.Second)
	b.rest()
	b.expect("it waits as it would without the look", "False NotReady")
}
