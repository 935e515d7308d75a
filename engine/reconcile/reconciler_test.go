package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/test/machine"
)

// The memory of a resource would otherwise grow with every name that there ever was, and a new
// resource of that name would have the salts of the old one.
func TestAResourceThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	b := pinnedBench(t, "4711")
	salt := func() string { return b.find("Secret", "own").GetAnnotations()["operetta.dev/salt"] }
	was := salt()
	act(t, b.memory, deleted)
	b.rest()
	if left := b.find("Secret", "own"); left != nil {
		t.Fatalf("the Secret is still there: %v", left.Object)
	}
	act(t, b.memory, map[string]any{})
	b.settle()
	if now := salt(); now == was || now == "" {
		t.Errorf("the Secret of a new resource of that name has the salt %q, and the old one had %q", now, was)
	}
}

// meeting is a cluster whose objects are applied once so many of them are being applied.
type meeting struct {
	cluster.Cluster
	missing atomic.Int32
	met     chan struct{}
}

// Apply implements cluster.Cluster.
func (m *meeting) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if m.missing.Add(-1) == 0 {
		close(m.met)
	}
	select {
	case <-m.met:
		return m.Cluster.Apply(ctx, u)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestComponentsWithoutAnOrderAreAppliedConcurrently(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for _, name := range []string{"a", "b", "c", "d"} {
		fmt.Fprintf(&body, "components: %s: objects: o: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: %q}\n", name, name)
	}
	b := newBench(t, body.String())
	m := &meeting{Cluster: b.memory, met: make(chan struct{})}
	m.missing.Store(4)
	b.reconciler.Cluster = m
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	if _, err := b.reconciler.Reconcile(ctx, shopKey, b.program); err != nil {
		t.Errorf("%d components were still missing: %v", m.missing.Load(), err)
	}
}

// stacked is another version of a package, whose evaluation panics.
type stacked struct{ *program.Program }

// Digest implements reconcile.Package.
func (stacked) Digest() string { return "stacked" }

// Evaluate implements reconcile.Package.
func (stacked) Evaluate(program.Session) (program.Rollout, error) {
	return program.Rollout{}, &program.PanicError{Cause: "cannot evaluate", Stack: []byte("evaluate.go:7")}
}

func TestTheStackOfAnEvaluationThatPanickedIsLogged(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed)
	logged := func(p reconcile.Package) []string {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		for range 5 {
			b.now = b.now.Add(5 * time.Second)
			if _, err := b.reconciler.Reconcile(logr.NewContext(t.Context(), log), shopKey, p); err != nil {
				t.Fatal(err)
			}
		}
		return slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, "evaluation failed") })
	}
	if got := logged(b.program); len(got) > 0 {
		t.Errorf("nothing has failed, and the log says %q", got)
	}
	if got := logged(stacked{b.program}); len(got) != 1 || !strings.Contains(got[0], "evaluate.go:7") {
		t.Errorf("the log says %q, want the stack once", got)
	}
}

func TestADryRunLetsTheTimePassThatProgressIsHeldBackFor(t *testing.T) {
	t.Parallel()
	const workload = `
components: web: objects: d: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: replicas: 9}
`
	// progress makes one more replica ready.
	progress := func(b *bench, ready int64) {
		b.t.Helper()
		u := b.find("Deployment", "web")
		u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "replicas": int64(9), "updatedReplicas": int64(9), "readyReplicas": ready, "availableReplicas": ready}
		if _, err := b.memory.Put("controller", u); err != nil {
			b.t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		reason string
		body   string
		act    func(b *bench)
		passed []time.Duration
		wait   time.Duration
	}{
		"nothing to wait for": {"it is at rest", timed, func(*bench) {}, nil, 0},
		"a requeue":           {"that is when to reconcile, and nothing is held back", timed + `requeueAfter: "30s"`, func(*bench) {}, nil, 30 * time.Second},
		"progress": {"some was written just now", workload, func(b *bench) {
			progress(b, 1)
			if _, err := b.reconciler.Reconcile(b.t.Context(), shopKey, b.program); err != nil {
				b.t.Fatal(err)
			}
			progress(b, 2)
		}, []time.Duration{3 * time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			b.rest()
			row.act(b)
			var passed []time.Duration
			wait, err := b.reconciler.ReconcileWithoutStatusDelay(t.Context(), shopKey, b.program, func(d time.Duration) {
				passed = append(passed, d)
				b.now = b.now.Add(d)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.passed, passed); diff != "" || wait != row.wait {
				t.Errorf("%s: it comes again after %s, want %s; what passed (-want +got):\n%s", row.reason, wait, row.wait, diff)
			}
		})
	}
}

// holdResource keeps the resource from going as somebody else.
func (b *bench) holdResource() {
	b.t.Helper()
	cr := b.find("Shop", shopKey.Name)
	cr.SetFinalizers(append(cr.GetFinalizers(), "example.com/held"))
	b.put(cr.Object)
}

func TestADeletedResourceWithoutTheFinalizerIsLeftToGarbageCollection(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed+`requeueAfter: "30s"`)
	b.rest()
	b.holdResource()
	act(t, b.memory, deleted)
	before := len(b.memory.Changes())
	if again, err := b.step(); err != nil || again != 0 || len(b.memory.Changes()) != before {
		t.Errorf("it comes again after %s, error %v, and has written %v", again, err, b.memory.Changes()[before:])
	}
}

func TestAPauseThatCannotBeReportedIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed)
	b.rest()
	b.annotate(reconcile.AnnotationPaused, "true")
	b.reconciler.Resources = mute{b.memory}
	if again, err := b.step(); err == nil || again != 0 {
		t.Errorf("it comes again after %s, error %v, want an error", again, err)
	}
	b.reconciler.Resources = b.memory
	if again, err := b.step(); err != nil || again != 0 {
		t.Errorf("it comes again after %s, error %v, want neither", again, err)
	}
}
