package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// errAway is what a cluster answers that cannot be reached.
var errAway = errors.New("the API server is away")

// unwatchable is a cluster that cannot observe some kinds. It can read them.
type unwatchable struct {
	*memory.Cluster
	kinds []string
}

// GetCached implements cluster.Cluster.
func (u unwatchable) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if slices.Contains(u.kinds, ref.Kind) {
		return nil, errAway
	}
	return u.Cluster.GetCached(ctx, ref)
}

// illegible is what cannot be read of what packages do not own.
type illegible struct{ cluster.Cluster }

// Read implements cluster.Cluster.
func (illegible) ListCached(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return nil, errAway
}

// push steps some times, whatever comes of it, and returns the last error.
func (b *bench) push() error {
	b.t.Helper()
	var last error
	for range 8 {
		_, last = b.step()
		b.memory.CollectGarbage()
	}
	return last
}

func TestADeletedResourceIsNotReadyBecauseTheClusterCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, guarded)
	b.rest()
	completeJobs(t, b.memory)
	b.rest()
	components := b.status()["components"]
	became := b.heard("BecameReady")
	act(t, b.memory, deleted)
	b.reconciler.Cluster = unwatchable{b.memory, []string{"ConfigMap"}}
	if err := b.push(); !errors.Is(err, errAway) {
		t.Errorf("error %v, want it to be tried again", err)
	}
	if got := b.status()["phase"]; got != string(status.PhaseDeleting) {
		t.Errorf("phase %v", got)
	}
	b.expect("it says what blocks the deletion, and the way out", "False ApplyFailed", errAway.Error(), reconcile.AnnotationSkipHooks)
	if n := b.heard("BecameReady"); n != became {
		t.Error("an event says that it became ready")
	}
	if got, _ := b.status()["components"].([]any); len(got) != len(components.([]any)) {
		t.Errorf("what was known of the components is gone: %v", got)
	}
	if b.find("ConfigMap", "web") == nil {
		t.Error("an object went before the hook ran")
	}
	b.reconciler.Cluster = b.memory
	b.rest()
	completeJobs(t, b.memory)
	b.rest()
	if left := b.memory.Refs(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestG2DeletionWithoutHooksNeedsTheInventoryAlone(t *testing.T) {
	t.Parallel()
	const newer = ordered + `
inputs: region: {apiVersion: "v1", kind: "Secret", name: "region"}
components: base: objects: o: data: region: inputs.region.object.data.name
`
	for name, blind := range map[string]func(b *bench){
		"an input cannot be read":   func(b *bench) { b.reconciler.Cluster = illegible{b.reconciler.Cluster} },
		"a kind cannot be observed": func(b *bench) { b.reconciler.Cluster = unwatchable{b.memory, []string{"ConfigMap"}} },
		"nor can any kind":          func(b *bench) { b.reconciler.Cluster = unwatchable{b.memory, []string{"ConfigMap", "ClusterRole"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ordered)
			b.rest()
			b.load(newer)
			act(t, b.memory, deleted)
			blind(b)
			if err := b.push(); err != nil {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(b.names(), " "); got != "shop-kept" || b.find("Shop", shopKey.Name) != nil {
				t.Errorf("left behind: %v", b.memory.Refs())
			}
			if d := b.deletions(); len(d) < 2 || d[len(d)-2] != "shop-base" {
				t.Errorf("G1: the order is lost: %v", d)
			}
		})
	}
	t.Run("what is held in a kind that cannot be observed is looked for again", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, ordered)
		b.rest()
		b.hold("shop-top")
		act(t, b.memory, deleted)
		b.reconciler.Cluster = unwatchable{b.memory, []string{"ConfigMap"}}
		again, err := b.step()
		if err != nil || again != 5*time.Second {
			t.Errorf("again in %s, error %v: no event will tell that it is gone", again, err)
		}
		b.rest()
		b.expect("it says what holds it", "False Deleting", "example.com/held")
		b.release("shop-top")
		if err := b.push(); err != nil || b.find("Shop", shopKey.Name) != nil {
			t.Errorf("error %v, left behind: %v", err, b.memory.Refs())
		}
	})
}

// hold keeps a ConfigMap from going, and release lets it go.
func (b *bench) hold(name string) { b.finalize(name, "example.com/held") }

func (b *bench) release(name string) { b.finalize(name) }

func (b *bench) finalize(name string, finalizers ...string) {
	b.t.Helper()
	u := b.find("ConfigMap", name)
	u.SetFinalizers(finalizers)
	if _, err := b.memory.Put("somebody", u); err != nil {
		b.t.Fatal(err)
	}
}

func TestSkippedHooksAreReportedOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spoil func(t *testing.T, b *bench)
	}{
		"the spec is invalid": {func(t *testing.T, b *bench) {
			t.Helper()
			act(t, b.memory, map[string]any{"size": "many"})
		}},
		"the configuration is no YAML": {func(t *testing.T, b *bench) {
			t.Helper()
			b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": "{: ["}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, guarded)
			b.rest()
			completeJobs(t, b.memory)
			b.rest()
			b.hold("web")
			row.spoil(t, b)
			act(t, b.memory, deleted)
			b.rest()
			for range 5 {
				if _, err := b.step(); err != nil {
					t.Fatal(err)
				}
			}
			b.restart() // what was skipped is not remembered by the process alone
			b.rest()
			if n := b.heard("HooksSkipped"); n != 1 {
				t.Errorf("%d events say that the hooks were skipped, want one", n)
			}
			b.expect("it goes on", "False Deleting", "example.com/held")
		})
	}
	t.Run("nothing is to be skipped", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, ordered)
		b.rest()
		act(t, b.memory, map[string]any{"size": "many"})
		act(t, b.memory, deleted)
		b.rest()
		if n := b.heard("HooksSkipped"); n != 0 {
			t.Errorf("%d events say that hooks were skipped which do not exist", n)
		}
	})
}

// unready is a package of which nothing can be made yet.
const unready = `
inputs: region: {apiVersion: "v1", kind: "ConfigMap", name: "region"}
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: inputs.region.object.data.name}
`

func TestHooksBeforeDeletionRunAlsoWhenNothingWasMade(t *testing.T) {
	t.Parallel()
	t.Run("they may be about what is elsewhere", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, unready+`hooks: beforeDelete: sign: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "sign-off"}`)
		b.rest()
		act(t, b.memory, deleted)
		b.rest()
		if len(objects(t, b.memory, "Job")) != 1 || b.find("Shop", shopKey.Name) == nil {
			t.Fatalf("the hook did not run: %v", b.memory.Refs())
		}
		completeJobs(t, b.memory)
		b.rest()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("but not if they are about what was never made", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, unready+`hooks: beforeDelete: {
	backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup-\(live.web.o.metadata.uid)"}
	sign: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "sign-off"}
	if live.web.o.data.region == "north" {
		north: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "north"}
	}
}`)
		b.rest()
		act(t, b.memory, deleted)
		b.rest()
		if n := len(objects(t, b.memory, "Job")); n != 1 {
			t.Fatalf("%d Jobs, want that of the hook which can run", n)
		}
		completeJobs(t, b.memory)
		b.rest()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("nothing will ever come of the other one, and yet there are left behind: %v", left)
		}
		if n := b.heard("HooksSkipped"); n != 1 {
			t.Errorf("%d events say that hooks were skipped, want one", n)
		}
	})
}

func TestAResourceWithoutItsPackageIsHeldForItsHooksAlsoWhenNothingWasMade(t *testing.T) {
	t.Parallel()
	b := newBench(t, unready+`hooks: beforeDelete: sign: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "sign-off"}`)
	b.rest()
	b.deleteWithoutPackage(old)
	b.restWithoutPackage()
	b.expect("the hook may be about what is elsewhere", "False PackageMissing", "hooks.beforeDelete.sign")
}
