package evaluate_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
	"operetta.dev/test/golden"
	"operetta.dev/test/inline"
)

const formPackage = `package shop

import "operetta.dev/schemas/operator"
%s
operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: {size: int & >=1 & <=50 | *2, ratio?: number, name?: string, other?: string, mode: *"a" | "b", on: bool | *false, pools?: [string]: int, hosts?: [...string], ports?: [...{n: int, t?: string}], any?: {...}}
components: web: {
	objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name
		%s
	}
	%s
}
%s
`

// TestEveryFormSaysWhatCUESays evaluates sessions of each form in both orders, with templates and by CUE.
// The golden file has which forms translate, and what has to be pinned for it. All of them take a minute,
// so that it is some of them unless OPERETTA_TEMPLATE_SESSIONS is set.
func TestEveryFormSaysWhatCUESays(t *testing.T) {
	t.Parallel()
	if os.Getenv("OPERETTA_TEMPLATE_SESSIONS") == "" {
		for i, f := range slices.Concat(inData, withCalls, inComponents) {
			if i%8 == 0 {
				p, sessions := f.load(t), formSessions()
				f.compare(t, p, sessions, answersOfCUE(p, sessions))
			}
		}
		for i, f := range slices.Concat(inSchemas, inDefinitions) {
			if i%4 > 0 {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.bothWays(t)
			})
		}
		return
	}
	var mu sync.Mutex
	coverage := map[string]string{}
	golden.Run(t, "testdata/forms.txtar", func(c *golden.Case) {
		t.Run("forms", func(t *testing.T) {
			for _, f := range slices.Concat(inData, withCalls, inComponents, inSchemas, inDefinitions) {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					forwards := f.bothWays(t)
					mu.Lock()
					defer mu.Unlock()
					coverage[f.name] = forwards
				})
			}
		})
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(coverage)) {
			lines = append(lines, name+": "+coverage[name])
		}
		c.Want("coverage", strings.Join(lines, "\n")+"\n")
	})
}

// bothWays compares sessions in both orders, and returns what became of the templates in the first one.
func (f form) bothWays(t *testing.T) string {
	t.Helper()
	p := f.load(t)
	sessions := formSessions()
	answers := answersOfCUE(p, sessions)
	forwards := f.compare(t, p, sessions, answers)
	slices.Reverse(sessions)
	slices.Reverse(answers)
	f.compare(t, p, sessions, answers)
	return forwards
}

// An answer is what an evaluation returns.
type answer struct {
	rollout program.Rollout
	err     error
}

// answersOfCUE evaluates sessions by CUE.
func answersOfCUE(p *program.Program, sessions []program.Session) []answer {
	out := make([]answer, len(sessions))
	for i, s := range sessions {
		out[i].rollout, out[i].err = p.Evaluate(s)
	}
	return out
}

// load compiles the package of a form.
func (f form) load(t *testing.T) *program.Program {
	t.Helper()
	text := fmt.Sprintf(formPackage, f.imports, f.data, f.part, f.root)
	return inline.Program(t, text)
}

// compare evaluates sessions with templates, which have to answer as CUE does, and returns what became of the templates.
func (f form) compare(t *testing.T, p *program.Program, sessions []program.Session, answers []answer) string {
	t.Helper()
	b := &observedBackend{Backend: evaluate.InProcess(p)}
	clock := time.Unix(0, 0)
	e := evaluate.New(p, evaluate.Options{
		Backend: b, CheckEvery: 1000,
		Now: func() time.Time {
			clock = clock.Add(time.Hour)
			return clock
		},
		Differs: func(_ context.Context, s program.Session) {
			t.Errorf("a template that was assembled differs for %v", s)
		},
	})
	for i, s := range sessions {
		want, wantErr := answers[i].rollout, answers[i].err
		got, gotErr := e.Evaluate(s)
		if !reflect.DeepEqual(want, got) || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Fatalf("session %d: errors %v and %v; (-CUE +template):\n%s", i, wantErr, gotErr, cmp.Diff(want, got))
		}
	}
	t.Log(b.reasons)
	return b.coverage()
}

// An observedBackend notes what came of the sessions that were compiled.
type observedBackend struct {
	evaluate.Backend
	templates, failures int
	pins                map[string]bool
	conditions          bool
	reasons             []string
}

func (b *observedBackend) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	r, err := b.Backend.Compile(ctx, s, pins)
	for _, why := range r.Untranslated {
		b.reasons = append(b.reasons, why.Path+": "+why.Message)
	}
	if r.Template == nil {
		b.failures += min(1, len(r.Untranslated))
		return r, err
	}
	b.templates++
	for _, path := range r.Pins.Paths() {
		if root := path[0]; root == "secrets" || root == "layers" || root == "config" {
			continue
		}
		if b.pins == nil {
			b.pins = map[string]bool{}
		}
		b.pins[strings.Join(path, ".")] = true
	}
	if len(r.Pins.Conditions()) > 0 {
		b.conditions = true
	}
	return r, err
}

func (b *observedBackend) coverage() string {
	out := "translated"
	switch {
	case b.templates == 0:
		return "by CUE"
	case b.failures > 0:
		out = "partly"
	}
	if b.conditions {
		out += " for each outcome"
	}
	return strings.TrimSpace(out + " " + map[bool]string{true: "by "}[len(b.pins) > 0] + strings.Join(slices.Sorted(maps.Keys(b.pins)), ", "))
}

// formSessions returns 24 sessions of few shapes: eight resources, with no live object yet and with
// two.
func formSessions() []program.Session {
	var out []program.Session
	for i := int64(1); i <= 8; i++ {
		for j := range int64(3) {
			out = append(out, formSession(i, j))
		}
	}
	return out
}

func formSession(i, j int64) program.Session {
	text := func(format string) string { return fmt.Sprintf(format, i) }
	s := program.Session{
		CR: map[string]any{
			"apiVersion": "shop.example/v1", "kind": "Shop",
			"metadata": map[string]any{"name": text("n%d"), "namespace": "town", "uid": text("u%d"), "labels": map[string]any{"team": text("t%d")}},
			"spec": map[string]any{
				"size": i, "ratio": []any{1.5, 2.25, 0.1}[i%3], "name": text("w-%d"), "mode": []any{"a", "b"}[i%2], "on": i%2 == 0,
				"pools": map[string]any{"a": i, "b": int64(2)}, "hosts": []any{"h1", text("h%d")},
				"ports": []any{map[string]any{"n": i, "t": text("x%d")}, map[string]any{"n": int64(3)}},
				"any":   map[string]any{"k": text("v%d"), "l": []any{int64(1), map[string]any{"m": i}}},
			},
		},
		Live:   map[string]map[string]map[string]any{},
		Inputs: map[string]program.FoundInput{},
	}
	if i%4 == 0 {
		s.Config = []program.Layer{{Origin: "ConfigMap", Values: map[string]any{"image": "other", "n": i}}}
	}
	if j == 0 {
		return s
	}
	s.Live["web"] = map[string]map[string]any{"cm": {"kind": "ConfigMap", "data": map[string]any{
		"a": []any{"x", text("w-%d")}[i%2], "n": i + j - 2,
		"conds": []any{map[string]any{"type": "Ready", "status": []any{"True", "False"}[j%2]}, map[string]any{"type": text("X%d"), "status": "a"}},
	}}}
	s.Live["s"] = map[string]map[string]any{"s": {"kind": "Secret", "data": map[string]any{"k": text("k%d")}}}
	found := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "data": map[string]any{"x": []any{text("w-%d"), "x"}[j%2]}}
	}
	s.Inputs["i"] = program.FoundInput{Objects: []map[string]any{found("ConfigMap", "i")}}
	s.Inputs["k"] = program.FoundInput{Objects: []map[string]any{found("Secret", "k")}}
	s.Inputs["s"] = program.FoundInput{Several: true, Objects: []map[string]any{found("ConfigMap", "one"), found("ConfigMap", text("two%d"))}}
	return s
}
