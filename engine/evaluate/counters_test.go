package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"operetta.dev/engine/compile"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// counted returns a counter of a package by its other label; "" stands for none.
func counted(t *testing.T, metrics *evaluate.Metrics, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() != "operetta_"+name {
				continue
			}
			by := ""
			for _, l := range metric.GetLabel() {
				if l.GetName() != "package" {
					by = l.GetValue()
				}
			}
			out[by] = metric.GetCounter().GetValue()
		}
	}
	return out
}

// A scriptedBackend is CUE, except for what comes of compilations.
type scriptedBackend struct {
	evaluate.Backend
	compiles func(r compile.Result) (compile.Result, error)
}

func (b scriptedBackend) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	r, err := b.Backend.Compile(ctx, s, pins)
	if b.compiles == nil || err != nil {
		return r, err
	}
	return b.compiles(r)
}

// untranslatable is what comes of a session that does not translate.
func untranslatable(r compile.Result) (compile.Result, error) {
	return compile.Result{Rollout: r.Rollout, Pins: r.Pins, Untranslated: []compile.Reason{{Message: "it does not translate"}}}, nil
}

// shaped returns a session of a shape that has a name.
func shaped(shape, name string) program.Session {
	s := formSession(1, 1)
	s.CR["spec"], s.Config = map[string]any{"name": name, "size": int64(2), "pools": map[string]any{shape: int64(1)}}, nil
	return s
}

// Each reason is where it belongs, so that a metric says why CUE is asked.
func TestEachReasonToAskCUEIsCounted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		root    string
		options evaluate.Options
		compile func(compile.Result) (compile.Result, error)
		changed bool
		ask     []program.Session
		want    map[string]float64
	}{
		"off": {
			reason: "there are no templates", options: evaluate.Options{Templates: evaluate.TemplatesOff},
			ask: []program.Session{shaped("a", "x"), shaped("a", "y")}, want: map[string]float64{"off": 2},
		},
		"unseen": {
			reason: "the first of a shape is compiled, and the second has a template",
			ask:    []program.Session{shaped("a", "x"), shaped("a", "y"), shaped("b", "x")}, want: map[string]float64{"unseen": 2},
		},
		"untranslated": {
			reason: "it was tried once", compile: untranslatable,
			ask: []program.Session{shaped("a", "x"), shaped("a", "y")}, want: map[string]float64{"unseen": 1, "untranslated": 1},
		},
		"throttled": {
			reason: "three failures leave a namespace too few tokens for what comes once, and two more for what comes twice", compile: untranslatable,
			ask: []program.Session{
				shaped("a", "x"), shaped("b", "x"), shaped("c", "x"), shaped("d", "x"), shaped("d", "y"), shaped("e", "x"), shaped("e", "y"), shaped("f", "x"), shaped("f", "y"),
			},
			want: map[string]float64{"unseen": 5, "seen-once": 3, "throttled": 1},
		},
		"guarded": {
			reason: "the template has no answer for what is invalid",
			ask:    []program.Session{shaped("a", "x"), withSize(shaped("a", "y"), 51)}, want: map[string]float64{"unseen": 1, "guarded": 1},
		},
		"limit": {
			reason: "what is beyond a limit is for CUE to say", root: "limits: bytes: 500",
			ask: []program.Session{shaped("a", "x"), shaped("a", strings.Repeat("y", 600))}, want: map[string]float64{"unseen": 1, "limit": 1},
		},
		"differed": {
			reason: "the template is compared and dropped, and its sessions have none", options: evaluate.Options{CheckEvery: 1}, changed: true,
			ask: []program.Session{shaped("a", "x"), shaped("a", "y"), shaped("a", "z")}, want: map[string]float64{"unseen": 1, "differed": 2},
		},
		"unchecked": {
			reason: "CUE confirms what the template says of another resource", options: evaluate.Options{Templates: evaluate.TemplatesChecked},
			ask: []program.Session{shaped("a", "x"), shaped("a", "y")}, want: map[string]float64{"unseen": 1, "unchecked": 1},
		},
		"suspect": {
			reason: "what hangs is not compiled", options: evaluate.Options{Suspect: func(string) bool { return true }},
			ask: []program.Session{shaped("a", "x"), shaped("a", "y")}, want: map[string]float64{"suspect": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := form{data: "data: a: cr.spec.name", root: row.root}.load(t)
			changed := &changedBackend{Backend: evaluate.InProcess(p), changed: row.changed}
			o := row.options
			o.Backend, o.Metrics, o.Now = scriptedBackend{changed, row.compile}, evaluate.NewMetrics(), func() time.Time { return time.Unix(0, 0) }
			e := evaluate.New(p, o)
			for _, s := range row.ask {
				_, _ = e.Evaluate(s) // what is beyond a limit is an error
			}
			if diff := cmp.Diff(row.want, counted(t, o.Metrics, "evaluation_fallbacks_total")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// withSize returns a session of a resource with a size.
func withSize(s program.Session, size int64) program.Session {
	s.CR["spec"].(map[string]any)["size"] = size
	return s
}

func TestWhatIsAskedWhileAnotherSessionIsCompiledIsCounted(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	metrics := evaluate.NewMetrics()
	var e *evaluate.Evaluator
	e = evaluate.New(p, evaluate.Options{Metrics: metrics, Backend: scriptedBackend{evaluate.InProcess(p), func(r compile.Result) (compile.Result, error) {
		_, err := e.Evaluate(shaped("b", "x"))
		return r, err
	}}})
	if _, err := e.Evaluate(shaped("a", "x")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"unseen": 1, "compiling": 1}, counted(t, metrics, "evaluation_fallbacks_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompilationsAreCountedByWhatCameOfThem(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	tooMuch := func(compile.Result) (compile.Result, error) {
		return compile.Result{}, &program.LimitError{TooSlow: true}
	}
	noWorker := func(compile.Result) (compile.Result, error) {
		return compile.Result{}, &program.UnavailableError{Err: errors.New("none")}
	}
	withoutTemplate := func(r compile.Result) (compile.Result, error) {
		r, err := untranslatable(r)
		r.Inconclusive = true
		return r, err
	}
	for _, row := range []struct {
		reason  string
		compile func(compile.Result) (compile.Result, error)
		size    int64
		want    string
	}{
		{"it translates", nil, 2, "template"},
		{"no session of the shape translates", untranslatable, 2, "untranslated"},
		{"the resource is invalid", nil, 51, "faulty"},
		{"a worker exceeds a limit", tooMuch, 2, "unfinished"},
		{"there is no worker", noWorker, 2, "unfinished"},
		{"the template alone is too much", withoutTemplate, 2, "unfinished"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			metrics := evaluate.NewMetrics()
			e := evaluate.New(p, evaluate.Options{Metrics: metrics, Backend: scriptedBackend{evaluate.InProcess(p), row.compile}})
			_, _ = e.Evaluate(withSize(shaped("a", "x"), row.size)) // an error is one of the cases
			if diff := cmp.Diff(map[string]float64{row.want: 1}, counted(t, metrics, "template_compiles_total")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A reconcile survives a panic, so that the process goes on with what the compilation has left behind.
func TestACompilationThatPanicsKeepsNoOtherFromCompiling(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	panics, metrics := true, evaluate.NewMetrics()
	e := evaluate.New(p, evaluate.Options{Metrics: metrics, Backend: scriptedBackend{evaluate.InProcess(p), func(r compile.Result) (compile.Result, error) {
		if panics {
			panic("in a compilation")
		}
		return r, nil
	}}})
	evaluated := func(name string) (panicked string) {
		t.Helper()
		defer func() {
			if cause := recover(); cause != nil {
				panicked = fmt.Sprint(cause)
			}
		}()
		if _, err := e.Evaluate(shaped("a", name)); err != nil {
			t.Error(err)
		}
		return ""
	}
	if got := evaluated("x"); got != "in a compilation" {
		t.Fatalf("it panics with %q", got)
	}
	panics = false
	if got := evaluated("y") + evaluated("z"); got != "" {
		t.Errorf("it panics with %q", got)
	}
	if diff := cmp.Diff(map[string]float64{"cue": 1, "template": 1}, counted(t, metrics, "evaluations_total")); diff != "" {
		t.Errorf("nothing was compiled after the panic (-want +got):\n%s", diff)
	}
}
