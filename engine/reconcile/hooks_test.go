package reconcile_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// unordered compares lists of names as sets.
var unordered = cmpopts.SortSlices(strings.Compare)

// phaseStore notes the phases that are written.
type phaseStore struct {
	cluster.Cluster
	seen map[string]bool
}

// ApplyStatus implements cluster.Cluster.
func (s phaseStore) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	s.seen[phase] = true
	return s.Cluster.ApplyStatus(ctx, u)
}

const guarded = `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: size: "\(cr.spec.size)"}
hooks: {
	afterDeploy: migrate: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "migrate", spec: completions: cr.spec.size}
	beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
}
`

func TestAFailedHookIsVisibleInTheStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t, guarded)
	b.rest()
	b.expect("it is not ready while a hook runs", "False HooksRunning", "hooks.afterDeploy.migrate")
	endJobs(t, b.memory, "Failed")
	b.rest()
	b.expect("a failed hook", "False HookFailed", "hooks.afterDeploy.migrate", "the Job has failed", "to run the hook again")
	if got, _ := b.condition(status.ConditionStalled); got != "True HookFailed" {
		t.Errorf("Stalled is %q", got)
	}
	if got := b.status()["phase"]; got != string(status.PhaseFailed) {
		t.Errorf("phase %v", got)
	}
	act(t, b.memory, map[string]any{"size": int64(2)})
	b.rest()
	completeJobs(t, b.memory)
	b.rest()
	b.expect("another content is another try", "True Ready")
	if n := len(objects(t, b.memory, "Job")); n != 1 {
		t.Errorf("%d Jobs, want the old one gone", n)
	}
}

func TestDeletionWaitsForTheHooksBeforeIt(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, guarded)
		b.rest()
		completeJobs(t, b.memory)
		b.rest()
		act(t, b.memory, deleted)
		b.rest()
		return b
	}
	t.Run("until they succeed", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		if b.find("ConfigMap", "web") == nil {
			t.Fatal("an object went before the hook ended")
		}
		b.expect("it says what it waits for", "False HooksRunning", "hooks.beforeDelete.backup")
		if got := b.status()["phase"]; got != string(status.PhaseDeleting) {
			t.Errorf("phase %v", got)
		}
		completeJobs(t, b.memory)
		b.rest()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("and goes on in the step that finds them done", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		completeJobs(t, b.memory)
		if _, err := b.step(); err != nil {
			t.Fatal(err)
		}
		b.memory.CollectGarbage()
		if b.find("ConfigMap", "web") != nil {
			t.Error("an object is still there, and no event need come that makes it go")
		}
	})
	t.Run("unless a person skips them", func(t *testing.T) {
		t.Parallel()
		b := ready(t)
		endJobs(t, b.memory, "Failed")
		b.rest()
		b.expect("it failed", "False HookFailed")
		if b.find("ConfigMap", "web") == nil {
			t.Fatal("an object went although the hook failed")
		}
		annotate(t, b.memory, reconcile.AnnotationSkipHooks, "true")
		b.rest()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("unless the package cannot be evaluated", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, guarded)
		b.rest()
		completeJobs(t, b.memory)
		b.rest()
		act(t, b.memory, map[string]any{"size": "many"})
		act(t, b.memory, deleted)
		b.rest()
		if left := b.memory.Refs(); len(left) != 0 {
			t.Errorf("G2: left behind: %v", left)
		}
		if !slices.ContainsFunc(b.events, func(e rollout.Event) bool { return e.Reason == "HooksSkipped" && e.Warning }) {
			t.Errorf("no warning says that the hooks were skipped: %v", b.events)
		}
	})
}

// hooked is the workload of the sweep with hooks: two Jobs after the rollout that
// depend on the spec, one before deletion, and objects beyond the namespace.
const hooked = benchHeader + `
reach: {"ClusterRole.rbac.authorization.k8s.io": {}, ConfigMap: namespaces: elsewhere: true}
_meta: name: cr.spec.name
_job: {apiVersion: "batch/v1", kind: "Job", spec: completions: cr.spec.size}
components: config: objects: {
	settings: {apiVersion: "v1", kind: "ConfigMap", metadata: _meta, data: size: "\(cr.spec.size)"}
	role: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: _meta}
}
components: web: {
	dependsOn: config: {}
	objects: {
		deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: _meta, spec: replicas: cr.spec.size}
		far: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: cr.spec.name, namespace: "elsewhere"}}
	}
}
hooks: {
	afterDeploy: migrate: objects: job: _job & {metadata: name: "migrate"}
	afterVerify: notify: objects: job: _job & {metadata: name: "notify"}
	beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
}
`

// hookedWorkloads are W1 to W4 for that package.
var hookedWorkloads = map[string]workload{
	"W1 create":              {{}},
	"W2 update":              {{}, {"size": int64(2)}},
	"W3 rename every object": {{}, {"name": "store"}},
	"W4 delete":              {{}, deleted},
	"W4 delete at once":      {{"size": int64(3)}, {"size": int64(4), "name": "store"}, deleted},
}

// TestA1A2HooksSurviveACrashAfterEveryWrite is A1 and A2 for hooks, and for objects that
// garbage collection does not reach: each hook runs once for its content, before the
// first object is deleted where it has to, and nothing is left behind.
func TestA1A2HooksSurviveACrashAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s := scene{program: evaluator(t, hooked)}
	if left, _ := s.liveThrough(t, hookedWorkloads["W4 delete"], fault{}); len(left.State) != 0 {
		t.Fatalf("left behind without any fault: %v", left.State)
	}
	s.sweep(t, hookedWorkloads, func(t *testing.T, c *disturbed) {
		t.Helper()
		backupComesFirst(t, c.Changes())
	})
}

// TestA3HooksLeakNothingWhenTheSpecChangesMeanwhile is A3 for hooks: the Job of a content
// that nobody wants any more goes, whenever the process that created it has died.
func TestA3HooksLeakNothingWhenTheSpecChangesMeanwhile(t *testing.T) {
	t.Parallel()
	some := maps.Clone(hookedWorkloads)
	delete(some, "W4 delete at once")
	scene{program: evaluator(t, hooked)}.sweepAway(t, some)
}

// backupComesFirst checks that, in the deletion of the resource, nothing but what an
// earlier change has pruned goes before the hook has run.
func backupComesFirst(t *testing.T, changes []cluster.Change) {
	t.Helper()
	for _, c := range slices.Backward(changes) {
		if c.Operation == "create" && strings.HasPrefix(c.Ref.Name, "backup") {
			return
		}
		if c.Operation == "create" && c.Ref.Kind != "Job" && len(changes) > 0 && changes[len(changes)-1].Ref.Kind == shopKind.Kind && changes[len(changes)-1].Operation == "delete" {
			t.Errorf("the resource is gone, and the hook before its deletion did not run after the last object was created: %s", c)
			return
		}
	}
}

// TestAClusterScopedResourceOwnsWhatItLikes rolls a resource without a namespace out
// and takes it away again.
func TestAClusterScopedResourceOwnsWhatItLikes(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
scope: "Cluster"
components: a: objects: role: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "a"}
components: b: {dependsOn: a: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "b", namespace: "elsewhere"}}}
`)
	b.memory = memory.New()
	b.memory.Serve(shopKind.GroupKind(), cluster.ClusterScoped)
	b.restart()
	key := types.NamespacedName{Name: "my"}
	cr := &unstructured.Unstructured{Object: map[string]any{}}
	cr.SetGroupVersionKind(shopKind)
	cr.SetName("my")
	if _, err := b.memory.Put("person", cr); err != nil {
		t.Fatal(err)
	}
	step := func() {
		t.Helper()
		for range 5 {
			if _, err := b.reconciler.Reconcile(t.Context(), key, b.program); err != nil {
				t.Fatal(err)
			}
			b.memory.CollectGarbage()
		}
	}
	step()
	b.expect("J3: it has no namespace to stay in", "True Ready")
	if refs := b.find("ConfigMap", "b").GetOwnerReferences(); len(refs) != 1 {
		t.Errorf("a cluster-scoped owner may be referred to from any namespace: %v", refs)
	}
	cr = b.find("Shop", "my")
	if err := b.memory.Delete(t.Context(), cluster.RefOf(cr), cr.GetUID()); err != nil {
		t.Fatal(err)
	}
	step()
	if diff := cmp.Diff([]string{"b", "a", "my"}, b.deletions()); diff != "" || len(b.memory.Refs()) != 0 {
		t.Errorf("G1 (-want +got):\n%s left %v", diff, b.memory.Refs())
	}
}
