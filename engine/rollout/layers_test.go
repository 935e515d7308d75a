package rollout_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/machine"
)

// TestAComponentThatAnApplyRevealsIsPartOfTheSameRollout: what a layer wrote may say
// that there are other components than before; Ready is about those.
func TestAComponentThatAnApplyRevealsIsPartOfTheSameRollout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, body string
		writes       []string
		states       []string
	}{
		"one more": {
			"Ready would come too early without it",
			`components: a: objects: o: ` + configMap("a", `, data: on: "yes"`) + `
if (*live.a.o.data.on | "no") == "yes" {components: extra: objects: o: ` + configMap("extra", "") + `}`,
			[]string{"create ConfigMap a", "create ConfigMap extra"},
			[]string{"a: Verified Verified", "extra: Verified Verified"},
		},
		"one more, before another": {
			"an edge that appears is kept",
			`components: a: objects: o: ` + configMap("a", `, data: on: "yes"`) + `
components: last: {dependsOn: a: {}, objects: o: ` + configMap("last", "") + `}
if (*live.a.o.data.on | "no") == "yes" {components: {last: dependsOn: extra: {}, extra: {requires: r: cr.spec.size > 5, objects: o: ` + configMap("extra", "") + `}}}`,
			[]string{"create ConfigMap a"},
			[]string{"a: Verified Verified", "last: Waiting WaitingForDependency", "extra: Waiting WaitingForRequirement"},
		},
		"one less": {
			"what nobody wants any more is not written",
			`components: a: objects: o: ` + configMap("a", `, data: on: "yes"`) + `
if (*live.a.o.data.on | "no") == "no" {components: only: {dependsOn: a: {}, objects: o: ` + configMap("only", "") + `}}`,
			[]string{"create ConfigMap a"},
			[]string{"a: Verified Verified"},
		},
		"one that was held, with its edge": {
			"a dependency that was not known yet is no fault of the package",
			`components: a: objects: o: ` + configMap("a", `, data: on: "yes"`) + `
components: b: {dependsOn: a: {}, objects: o: ` + configMap("b", "") + `}
if live.a.o.data.on == "yes" {components: c: {dependsOn: b: {}, objects: o: ` + configMap("c", "") + `}}`,
			[]string{"create ConfigMap a", "create ConfigMap b", "create ConfigMap c"},
			[]string{"a: Verified Verified", "b: Verified Verified", "c: Verified Verified"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.body)
			result := w.mustRun()
			w.expectWrites(c.reason, c.writes...)
			expectStates(t, result, c.states...)
		})
	}
}

// TestAnEdgeForOrderDoesNotWaitForHealth: until "applied" asks for the write alone, as
// a plain dependency of oper8 does, also when what was written has failed since.
func TestAnEdgeForOrderDoesNotWaitForHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, deployment+`
components: after: {dependsOn: web: until: "applied", objects: o: `+configMap("after", ", data: size: \"\\(cr.spec.size)\"")+`}`)
	expectStates(t, w.mustRun(), "web: Applied NotReady", "after: Verified Verified")
	w.change("Deployment", "web", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(),
			"conditions":         []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}},
		}
	})
	w.spec["size"] = int64(2)
	w.wrote()
	result := w.mustRun()
	w.expectWrites("web is applied, however it fares", "update ConfigMap after")
	expectStates(t, result, "web: Failed ObjectFailed", "after: Verified Verified")
}

// deployment is a component that somebody has to make available.
const deployment = `
components: web: objects: o: _deployment & {metadata: name: "web", spec: replicas: 1}`

func TestACheckThatCanNeverBeDecidedIsAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: {
	a: objects: o: `+configMap("a", `, data: n: "text"`)+`
	b: {dependsOn: a: check: live.a.o.data.n > 5, objects: o: `+configMap("b", "")+`}
	c: objects: o: `+configMap("c", "")+`
}`)
	result := w.mustRun()
	expectStates(t, result, "a: Verified Verified", "b: Failed PredicateBroken", "c: Verified Verified")
	if got := message(result, "b"); !strings.Contains(got, "the check on a cannot be decided") || !strings.Contains(got, "body.cue:") {
		t.Errorf("it says %q, want the check and its place", got)
	}
}

func TestAnOptionalEdgeDoesNotExclude(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: {
	a: {when: cr.spec.on, objects: o: `+configMap("a", "")+`}
	needs: {dependsOn: a: {}, objects: o: `+configMap("needs", "")+`}
	uses: {dependsOn: a: optional: true, objects: o: `+configMap("uses", "")+`}
}`)
	w.mustRun()
	w.wrote()
	w.spec["on"] = false
	w.mustRun()
	result := w.mustRun()
	w.expectWrites("what only may use it stays", "delete ConfigMap needs", "delete ConfigMap a")
	expectStates(t, result, "a: Excluded Excluded", "needs: Excluded Excluded", "uses: Verified Verified")
}

// busy counts how many applies are under way at once; each waits until all that may
// be there are.
type busy struct {
	cluster.Cluster
	now, most atomic.Int64
	expected  int64
	full      chan struct{}
	once      sync.Once
}

func (b *busy) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	n := b.now.Add(1)
	defer b.now.Add(-1)
	most := b.most.Load()
	for n > most && !b.most.CompareAndSwap(most, n) {
		most = b.most.Load()
	}
	if n == b.expected {
		b.once.Do(func() { close(b.full) })
	}
	select {
	case <-b.full:
	case <-ctx.Done():
	}
	return b.Cluster.Apply(ctx, u)
}

func TestALayerIsAppliedSideBySideAndBounded(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 12 {
		fmt.Fprintf(&body, "components: c%d: objects: o: %s\n", i, configMap(fmt.Sprintf("c%d", i), ""))
	}
	for _, parallel := range []int{1, 4} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, body.String())
			b := &busy{Cluster: w.cluster, full: make(chan struct{}), expected: int64(parallel)}
			e := &rollout.Engine{Package: w.program, Cluster: b, Parallel: parallel}
			ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
			defer cancel()
			if _, err := e.Run(ctx, rollout.Input{Owner: w.owner, CR: w.cr(), StoreWriteAhead: func(context.Context, rollout.WriteAhead) error { return nil }}); err != nil {
				t.Fatal(err)
			}
			if got := b.most.Load(); got != int64(parallel) {
				t.Errorf("%d components were applied at once, want %d", got, parallel)
			}
		})
	}
}

// raw is an evaluator that answers the same whatever it is asked.
type raw struct {
	out program.Rollout
	err error
}

func (r raw) Evaluate(program.Session) (program.Rollout, error) { return r.out, r.err }

func TestAFailureOfTheEvaluatorIsReportedAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: o: `+configMap("a", ""))
	w.mustRun()
	w.wrote()
	e := &rollout.Engine{Package: raw{err: &program.PanicError{Cause: "boom", Stack: []byte("goroutine 1")}}, Cluster: w.cluster}
	result, err := e.Run(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory})
	if err != nil {
		t.Errorf("it is to be tried again, which changes nothing: %v", err)
	}
	f := result.Completion.Fault
	if f.Reason != "EvaluationFailed" || strings.Contains(f.Message, "goroutine") || !strings.Contains(result.Detail, "goroutine 1") {
		t.Errorf("the fault is %+v and the detail %q, want the stack in the detail alone", f, result.Detail)
	}
	if !result.Inventory.Equal(w.inventory) {
		t.Errorf("the inventory is %v, want %v", result.Inventory, w.inventory)
	}
	w.expectWrites("nothing is done without an evaluation")
}

// TestDriftIsRepairedBehindAClosedGate: what was last applied to a dependent is kept
// as it was, whatever was done to it, and nothing new is rolled out to it.
func TestDriftIsRepairedBehindAClosedGate(t *testing.T) {
	t.Parallel()
	drifts := map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		writes []string
	}{
		"a field": {
			"the value is what was applied",
			func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"size": "9"} },
			[]string{"update ConfigMap after"},
		},
		"a label": {
			"it is how the object is found",
			func(u *unstructured.Unstructured) { u.SetLabels(nil) },
			[]string{"update ConfigMap after"},
		},
		"what says that it was applied": {
			"the inventory knows as well what was applied",
			func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
			[]string{"update ConfigMap after"},
		},
		"what nobody has applied": {
			"other fields are somebody else's",
			func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"size": "1", "more": "x"} },
			nil,
		},
	}
	for name, d := range drifts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, deployment+`
components: after: {dependsOn: web: {}, objects: o: `+configMap("after", ", data: size: \"\\(cr.spec.size)\"")+`}`)
			w.mustRun()
			w.available("web")
			w.mustRun()
			w.change("Deployment", "web", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
			})
			w.change("ConfigMap", "after", d.change)
			w.wrote()
			result := w.mustRun()
			w.expectWrites(d.reason, d.writes...)
			expectStates(t, result, "web: Applied NotReady", "after: Waiting WaitingForDependency")
			if result.Completion.Ready() {
				t.Error("it is ready, though a component is not")
			}
			w.spec["size"] = int64(2)
			w.mustRun()
			w.expectWrites("nothing new is rolled out behind what is not healthy")
		})
	}
}
