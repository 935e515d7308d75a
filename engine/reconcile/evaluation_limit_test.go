package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/machine"
)

// costly is a package that renders as many objects as the spec, or a ConfigMap, says. It
// counts its evaluations, each of which may be too slow.
type costly struct {
	*program.Program
	slow        func(program.Session) bool
	evaluations int
}

// Evaluate implements reconcile.Package.
func (c *costly) Evaluate(s program.Session) (program.Rollout, error) {
	c.evaluations++
	if c.slow != nil && c.slow(s) {
		return program.Rollout{}, &program.LimitError{Evaluated: true, TooSlow: true, Text: "it was too slow"}
	}
	return c.Program.Evaluate(s)
}

const fanout = `
components: one: objects: {for i, _ in *cr.spec.list | [] {"c\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c\(i)"}}}
components: last: {dependsOn: one: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "last"}}
`

func ones(n int) []any { return slices.Repeat([]any{int64(1)}, n) }

// stepsOf takes steps with a package, as events would, and returns the last wait.
func (b *bench) stepsOf(n int, p reconcile.Package) time.Duration {
	b.t.Helper()
	var again time.Duration
	for range n {
		b.now = b.now.Add(time.Second)
		var err error
		if again, err = b.reconciler.Reconcile(b.t.Context(), shopKey, p); err != nil {
			b.t.Fatal(err)
		}
	}
	return again
}

func TestWhatIsBeyondALimitIsEvaluatedAgainWhenSomethingHasChanged(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range map[string]struct {
		reason      string
		change      func(b *bench)
		evaluations int // in ten steps after the change
	}{
		"nothing changes":     {"it would only be beyond the limit again", func(*bench) {}, 0},
		"an object is gone":   {"it is restored when the resource is right", func(b *bench) { b.remove("ConfigMap", "c0") }, 0},
		"the process is new":  {"the status remembers", (*bench).restart, 0},
		"four minutes pass":   {"it is too early", func(b *bench) { b.now = b.now.Add(4 * time.Minute) }, 0},
		"six minutes pass":    {"it may have been the machine", func(b *bench) { b.now = b.now.Add(6 * time.Minute) }, 1},
		"a person asks":       {"they may know why", func(b *bench) { b.annotate(reconcile.AnnotationReconcileAt, "now") }, 1},
		"another spec is bad": {"it may have been the correction", func(b *bench) { act(b.t, b.memory, map[string]any{"list": ones(601)}) }, 1},
		"configuration":       {"it may be the correction", func(b *bench) { b.annotate(reconcile.AnnotationConfig, "a: 1") }, 1},
		"a new process, and another spec": {"what is remembered is about another one", func(b *bench) {
			b.restart()
			act(b.t, b.memory, map[string]any{"list": ones(601)})
		}, 1},
		"a new process, and a person asks": {"they may know why", func(b *bench) {
			b.restart()
			b.annotate(reconcile.AnnotationReconcileAt, "now")
		}, 1},
		"a person has asked, and a new process": {"they have their answer", func(b *bench) {
			b.annotate(reconcile.AnnotationReconcileAt, "now")
			b.stepsOf(1, b.program)
			b.restart()
		}, 0},
		"a new process, and six minutes": {"it may have been the machine", func(b *bench) {
			b.restart()
			b.stepsOf(1, &costly{Program: b.program})
			b.now = b.now.Add(6 * time.Minute)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fanout+"config: {...}\n")
			p := &costly{Program: b.program}
			act(t, b.memory, map[string]any{"list": ones(3)})
			b.rest()
			act(t, b.memory, map[string]any{"list": ones(600)})
			if again := b.stepsOf(10, p); p.evaluations != 1 || again <= 0 || again > 5*time.Minute {
				t.Fatalf("in ten steps it was evaluated %d times, want once; the last one comes again after %s", p.evaluations, again)
			}
			b.expect("601 objects are too many", "False EvaluationLimit", "renders at least 600 objects", "most of them in component one", "500 are the limit")
			if got := len(objects(t, b.memory, "ConfigMap")); got != 4 {
				t.Errorf("%d ConfigMaps, want the 4 from before", got)
			}
			p.evaluations = 0
			row.change(b)
			b.stepsOf(10, p)
			if p.evaluations != row.evaluations {
				t.Errorf("%s: it was evaluated %d times, want %d", row.reason, p.evaluations, row.evaluations)
			}
			b.expect("it is as it was", "False EvaluationLimit", "500 are the limit")
			act(t, b.memory, map[string]any{"list": ones(2)})
			b.rest()
			b.expect("it was corrected", "True Ready")
			if got := len(objects(t, b.memory, "ConfigMap")); got != 3 {
				t.Errorf("%d ConfigMaps, want 3: what is too much was pruned", got)
			}
		})
	}
}

func TestAnEvaluationThatTakesTooLongIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout)
	b.rest()
	p := &costly{Program: b.program, slow: func(program.Session) bool { return true }}
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.stepsOf(10, p)
	b.expect("it took too long", "False EvaluationTooSlow", "it was too slow")
	b.restart()
	b.stepsOf(10, p)
	if p.evaluations != 1 {
		t.Errorf("it was evaluated %d times, want once", p.evaluations)
	}
	for _, minutes := range []int{5, 10, 20, 40} {
		before := p.evaluations
		b.now = b.now.Add(time.Duration(minutes-1) * time.Minute)
		if b.stepsOf(1, p); p.evaluations != before {
			t.Errorf("it was evaluated within %d minutes", minutes)
		}
		b.now = b.now.Add(2 * time.Minute)
		if b.stepsOf(1, p); p.evaluations != before+1 {
			t.Errorf("it was evaluated %d times after %d minutes, want once", p.evaluations-before, minutes)
		}
	}
	p.slow = nil // it was the machine
	b.now = b.now.Add(2 * time.Hour)
	b.stepsOf(10, p)
	b.expect("the machine is fast again", "True Ready")
}

// Who changes a resource all the time has it evaluated a few times, and then now and then.
func TestAResourceThatIsBeyondALimitInNewWaysIsEvaluatedInPauses(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, fanout)
	p := &costly{Program: b.program}
	for i := range 600 {
		act(t, b.memory, map[string]any{"list": ones(501 + i)})
		b.stepsOf(1, p)
	}
	if p.evaluations > 10 {
		t.Errorf("600 changes in ten minutes were evaluated %d times", p.evaluations)
	}
}

func TestAnInputThatIsTooMuchIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, `
inputs: it: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
components: one: objects: {for k, _ in *inputs.it.object.data | {} {(k): {apiVersion: "v1", kind: "ConfigMap", metadata: name: k}}}
`)
	set := func(n int) {
		data := map[string]any{}
		for i := range n {
			data[fmt.Sprint("k", i)] = "v"
		}
		b.put(settings(shopKey.Namespace, "settings", data))
	}
	p := &costly{Program: b.program}
	for _, row := range []struct {
		keys  int
		ready string
	}{{3, "True Ready"}, {600, "False EvaluationLimit"}, {4, "True Ready"}, {11_000, "False EvaluationLimit"}, {2, "True Ready"}} {
		set(row.keys)
		b.stepsOf(10, p)
		b.now = b.now.Add(time.Minute)
		b.expect(fmt.Sprintf("the input has %d keys", row.keys), row.ready)
	}
}

func TestTeardownNeedsNoEvaluationThatIsBeyondALimit(t *testing.T) {
	t.Parallel()
	for name, pkg := range map[string]string{
		"without hooks": fanout,
		"with hooks": fanout + `hooks: beforeDelete: bye: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bye"}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pkg)
			act(t, b.memory, map[string]any{"list": ones(3)})
			b.rest()
			act(t, b.memory, map[string]any{"list": ones(600)})
			p := &costly{Program: b.program}
			b.stepsOf(3, p)
			b.restart()
			p.evaluations = 0
			act(t, b.memory, map[string]any{"deleted": true})
			for range 10 {
				b.stepsOf(1, p)
				b.memory.CollectGarbage()
			}
			if p.evaluations != 0 {
				t.Errorf("it was evaluated %d times", p.evaluations)
			}
			if b.find("Shop", shopKey.Name) != nil || len(objects(t, b.memory, "ConfigMap")) > 0 {
				t.Errorf("%v are left", b.memory.Refs())
			}
		})
	}
}

func TestHooksBeforeDeletionAreNotSkippedBecauseOfASlowMoment(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		slow    int // how many evaluations are
		restart bool
		skipped bool
	}{
		"a slow moment":            {1, false, false},
		"a slow moment, a restart": {1, true, false},
		"slow forever":             {1000, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fanout+`hooks: beforeDelete: bye: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bye"}
`)
			act(t, b.memory, map[string]any{"list": ones(3)})
			b.rest()
			left := row.slow
			p := &costly{Program: b.program, slow: func(program.Session) bool { left--; return left >= 0 }}
			act(t, b.memory, map[string]any{"deleted": true})
			again := b.stepsOf(3, p)
			if b.find("ConfigMap", "c0") == nil || again <= 0 || again > 5*time.Minute || p.evaluations != 1 {
				t.Fatalf("after one slow evaluation of %d it comes again after %s, and objects are %v", p.evaluations, again, b.memory.Refs())
			}
			b.expect("people are told what the deletion waits for", "False EvaluationTooSlow", "the hooks before deletion cannot run", "it was too slow")
			if row.restart {
				b.restart()
				b.stepsOf(1, p)
			}
			for range 10 {
				b.now = b.now.Add(6 * time.Minute)
				b.stepsOf(1, p)
				b.memory.CollectGarbage()
			}
			skipped := slices.ContainsFunc(b.events, func(e rollout.Event) bool { return e.Reason == "HooksSkipped" })
			if b.find("Shop", shopKey.Name) != nil || skipped != row.skipped {
				t.Errorf("hooks were skipped: %v, want %v; what is left is %v", skipped, row.skipped, b.memory.Refs())
			}
		})
	}
}

// The package is evaluated once more without the configuration that a tenant has written into the
// resource, and the hooks run with that.
func TestASlowConfigurationOfTheResourceItselfDelaysNoDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout+`config: {...}
hooks: beforeDelete: bye: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bye"}
`)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	b.annotate(reconcile.AnnotationConfig, "a: 1")
	act(t, b.memory, deleted)
	p := &costly{Program: b.program, slow: func(s program.Session) bool {
		return slices.ContainsFunc(s.Config, func(l program.Layer) bool { return l.Tenant })
	}}
	for range 10 {
		b.stepsOf(1, p)
		b.memory.CollectGarbage()
	}
	if u := b.find("Shop", shopKey.Name); u != nil {
		t.Errorf("its deletion waits: %v", u.Object["status"])
	}
	if b.heard("HooksSkipped") > 0 {
		t.Errorf("the hook did not run: %v", b.events)
	}
}

// worded is a package whose limit is told in the words that a slow evaluation is told in.
type worded struct{ *program.Program }

// Evaluate implements reconcile.Package.
func (worded) Evaluate(program.Session) (program.Rollout, error) {
	return program.Rollout{}, &program.LimitError{Evaluated: true, Text: "renders too many objects, most of them in component it was too slow"}
}

// A message is for people: the engine must not decide by its words whether an evaluation was slow.
func TestWhetherAnEvaluationWasSlowIsNotReadFromItsMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout+`hooks: beforeDelete: bye: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bye"}
`)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	act(t, b.memory, deleted)
	for range 10 {
		b.stepsOf(1, worded{b.program})
		b.memory.CollectGarbage()
	}
	if u := b.find("Shop", shopKey.Name); u != nil {
		t.Errorf("its deletion waits, although a second evaluation would exceed the same limit: %v", u.Object["status"])
	}
}

// small is a store that takes only so much of a resource, as etcd does.
type small struct {
	cluster.Cluster
	takes    int
	attempts int
}

// ApplyStatus implements cluster.Cluster.
func (s *small) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	s.attempts++
	if text := fmt.Sprint(u.Object); len(text) > s.takes {
		return &apierrors.StatusError{ErrStatus: internalError("etcdserver: request is too large")}
	}
	return s.Cluster.ApplyStatus(ctx, u)
}

func TestAStatusThatIsTooLargeIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range map[string]struct {
		takes, text int
		ready       string
	}{
		"a smaller one fits":            {4000, 1 << 20, "False StatusTooLarge"},
		"none fits":                     {10, 1 << 20, ""},
		"with it the resource is large": {4000, 250 << 10, "False StatusTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fanout)
			store := &small{Cluster: b.reconciler.Resources, takes: row.takes}
			b.reconciler.Resources = store
			act(t, b.memory, map[string]any{"list": ones(100), "text": strings.Repeat("x", row.text)})
			b.load(fanout + "limits: bytes: 1_500_000\n")
			if again := b.stepsOf(20, b.program); again != 5*time.Minute {
				t.Errorf("it comes again after %s", again)
			}
			if store.attempts > 2 {
				t.Errorf("the status was written %d times, want once, and once less of it", store.attempts)
			}
			if got := len(objects(t, b.memory, "ConfigMap")); got != 0 {
				t.Errorf("%d ConfigMaps were written, and nobody would know of them", got)
			}
			if got, _ := b.condition("Ready"); got != row.ready {
				t.Errorf("Ready is %q, want %q", got, row.ready)
			}
			if len(b.events) == 0 || b.events[0].Reason != "StatusTooLarge" {
				t.Errorf("events are %v", b.events)
			}
			store.takes = 1 << 30
			b.now = b.now.Add(5 * time.Minute)
			b.rest()
			b.expect("there is room now", "True Ready")
		})
	}
}

// A log of what was beyond a limit tells how often it was evaluated.
func TestAnEvaluationBeyondALimitIsLogged(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	act(t, b.memory, map[string]any{"list": ones(600)})
	for range 5 {
		b.now = b.now.Add(time.Second)
		if _, err := b.reconciler.Reconcile(logr.NewContext(t.Context(), log), shopKey, b.program); err != nil {
			t.Fatal(err)
		}
	}
	said := slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, "an evaluation was beyond its limit") })
	if len(said) != 1 {
		t.Errorf("it was logged %d times", len(said))
	}
}

// internalError is what an API server says when its store does not take an object.
func internalError(message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}
}

// annotate sets an annotation of the resource.
func (b *bench) annotate(key, value string) {
	b.t.Helper()
	cr := b.find("Shop", shopKey.Name)
	all := cr.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	cr.SetAnnotations(all)
	b.put(cr.Object)
}

// unavailable is a package that cannot be evaluated now, which is nobody's fault.
type unavailable struct{ *program.Program }

// Evaluate implements reconcile.Package.
func (unavailable) Evaluate(program.Session) (program.Rollout, error) {
	return program.Rollout{}, &program.UnavailableError{Err: errors.New("no process can be started")}
}

func TestAnEvaluationThatWasNotMadeIsRetriedAndIsNobodysFault(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	act(t, b.memory, map[string]any{"list": ones(2)})
	b.now = b.now.Add(time.Second)
	if _, err := b.reconciler.Reconcile(b.t.Context(), shopKey, unavailable{b.program}); err == nil {
		t.Error("it is not retried")
	}
	b.expect("it says what it waits for", "False EvaluationFailed", "no process can be started")
	if got := len(objects(t, b.memory, "ConfigMap")); got != 4 {
		t.Errorf("%d ConfigMaps, want the 4 from before", got)
	}
	b.rest()
	b.expect("it is evaluated again", "True Ready")
}
