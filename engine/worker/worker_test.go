package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/engine/worker"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// workerArgument is the first argument of this program when it is a worker.
const workerArgument = "work"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == endingArgument {
		fmt.Fprintln(os.Stderr, serveAndEnd(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == wornArgument {
		fmt.Fprintln(os.Stderr, serveUntilWorn(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) < 2 || os.Args[1] != workerArgument {
		os.Exit(m.Run())
	}
	l, err := worker.ParseLimits(os.Args[2], os.Args[3])
	if err == nil {
		err = worker.Serve(os.Stdin, os.Stdout, l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// testTime is how much processor time an evaluation may take in tests.
const testTime = 500 * time.Millisecond

// testPatience is how many times as long it may take by the clock, however busy the machine is.
const testPatience = int(machine.Patience / testTime)

// newPool returns a pool of so many workers.
func newPool(t testing.TB, size int) *worker.Pool {
	t.Helper()
	p := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], workerArgument}, Size: size, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}, Patience: testPatience,
	})
	t.Cleanup(p.Close)
	return p
}

// head is the beginning of every package of these tests.
const head = `package shop

import (
	"list"
	"math/bits"
	"text/template"
	"encoding/json"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: {n: int | *1, shift: int | *1, text: string | *"hello", list: string | *"[]"}
components: one: objects: {for i in list.Range(0, cr.spec.n, 1) {"c\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c\(i)"}}}
components: two: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "two", data: {
	shifted: "\(len("\(bits.Lsh(1, cr.spec.shift))"))"
	text:    template.Execute(cr.spec.text, "x")
	amount:  "\(len(json.Unmarshal(cr.spec.list)))"
}}
components: three: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "three", data: {for a in list.Range(0, cr.spec.n/100, 1) for b in list.Range(0, cr.spec.n/100, 1) for c in list.Range(0, cr.spec.n/100, 1) {"k\(a)-\(b)-\(c)": "v"}}}
`

// compile compiles a package that is head and more.
func compile(t testing.TB, more string) *program.Program {
	t.Helper()
	return inline.Program(t, head+more)
}

// session is a session of a resource in a namespace.
func session(namespace string, spec map[string]any) program.Session {
	return program.Session{CR: map[string]any{
		"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "corner", "namespace": namespace, "uid": namespace}, "spec": spec,
	}}
}

// endless is a template that never ends and needs no memory.
const endless = "{{range $i := 9223372036854775807}}{{end}}"

func TestWorkersReturnWhatTheProgramReturns(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	in := newPool(t, 2).Package(p)
	for _, spec := range []map[string]any{nil, {}, {"n": int64(3)}, {"n": 3.0}, {"n": "text"}, {"n": int64(600)}, {"text": "{{"}, {"text": "\xff\u2028"}, {"more": nil}} {
		want, wantErr := p.Evaluate(session("town", spec))
		got, err := in.Evaluate(t.Context(), session("town", spec))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", spec, diff)
		}
		if fmt.Sprintf("%T %v", wantErr, wantErr) != fmt.Sprintf("%T %v", err, err) {
			t.Errorf("%v: got %v, want %v", spec, err, wantErr)
		}
	}
}

// deep is a template that calls itself. The library for templates ends that only where the stack has some hundred MiB.
const deep = `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`

// largeNumber is a number that takes all memory at once.
const largeNumber = "a number of 12 GB"

// A number is all that it takes to make CUE run for ever, or take all memory. What is said of it is nearly the same each
// time: a row has no other limit that it could meet first, but what grows fast may be ended by Go or by the system a moment
// before the worker looks, which then can say only that it ended.
func TestAnEvaluationThatTakesTooMuchCostsAWorker(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	short, long := worker.Limits{Memory: 1 << 30, Time: testTime}, worker.Limits{Memory: 128 << 20, Time: machine.Patience}
	const lines = ", probably at shop/shop.cue:19 or shop/shop.cue:21 or shop/shop.cue:22"
	ended := func(mib int) string {
		return fmt.Sprintf("its evaluation ended the process that it ran in, which had a limit of %d MiB of memory", mib) + lines
	}
	for name, c := range map[string]struct {
		spec   map[string]any
		limits worker.Limits
		want   string
		// orWant is what is said if the worker has no time to look.
		orWant string
	}{
		"a template that never ends": {map[string]any{"text": endless}, short, "its evaluation took more than the limit of 500ms of processor time" + lines, ""},
		"nested loops":               {map[string]any{"n": int64(40_000)}, short, "its evaluation took more than the limit of 500ms of processor time" + lines, ""},
		"a template that calls itself": {
			map[string]any{"text": deep}, worker.Limits{Memory: 1 << 30, Time: machine.Patience}, "its evaluation took more than the limit of 32 MiB of stack" + lines, ended(1024),
		},
		"a range without an end": {map[string]any{"n": int64(1_000_000_000)}, long, "its evaluation took more than the limit of 128 MiB of memory" + lines, ended(128)},
		largeNumber:              {map[string]any{"shift": int64(100_000_000_000)}, long, ended(128), ""},
		"a list of a megabyte": {
			map[string]any{"list": "[" + strings.Repeat("[],", 500_000) + "[]]"}, long, "the names and texts in cr have 1500115 bytes, most of them in cr.spec.list, and may have 262144", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == largeNumber && runtime.GOOS != "linux" {
				t.Skip("only Linux refuses a process memory beyond a limit")
			}
			pool := worker.NewPool(worker.Options{Command: []string{os.Args[0], workerArgument}, Size: 1, Limits: c.limits, Patience: testPatience})
			t.Cleanup(pool.Close)
			in := pool.Package(p)
			began := time.Now()
			_, err := in.Evaluate(t.Context(), session(name, c.spec))
			limit, over := errors.AsType[*program.LimitError](err)
			t.Logf("after %s", time.Since(began))
			if !over {
				t.Fatalf("got %v, want a limit", err)
			}
			if diff := cmp.Diff(c.want, limit.Text); diff != "" && (c.orWant == "" || limit.Text != c.orWant) {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
				t.Errorf("others: %v", err)
			}
		})
	}
}

func TestNobodyWaitsForResourcesThatNeverEnd(t *testing.T) {
	t.Parallel()
	in := newPool(t, 2).Package(compile(t, ""))
	hostile, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	if _, err := in.Evaluate(t.Context(), session("mallory", map[string]any{"text": endless})); err == nil {
		t.Fatal("it ended")
	}
	for range 10 {
		running.Go(func() {
			for hostile.Err() == nil {
				_, _ = in.Evaluate(hostile, session("mallory", map[string]any{"text": endless}))
			}
		})
	}
	worst := time.Duration(0)
	for i := range 50 {
		began := time.Now()
		if _, err := in.Evaluate(t.Context(), session("town", map[string]any{"n": int64(i)})); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(began))
	}
	stop()
	running.Wait()
	t.Logf("the longest took %s", worst)
	if limit := machine.Limit(5 * time.Second); worst > limit {
		t.Errorf("an evaluation waited for %s, more than %s", worst, limit)
	}
}

func TestTheEvaluationsOfARolloutHaveALimitTogether(t *testing.T) {
	t.Parallel()
	in := newPool(t, 1).Package(compile(t, ""))
	ctx := worker.WithRollout(t.Context())
	for i := range 1000 {
		_, err := in.Evaluate(ctx, session("town", map[string]any{"text": fmt.Sprintf("{{range $i := 600000}}{{end}}%d", i)}))
		if limit, over := errors.AsType[*program.LimitError](err); over {
			if !limit.TooSlow || !strings.Contains(limit.Text, "3s of processor time for all of a rollout") {
				t.Errorf("evaluation %d: %v", i, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("they took %s together", worker.ProcessorTimeSpent(ctx))
}

func TestAWorkerThatCannotBeStartedIsNobodysFault(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{"there is none": {"/nowhere"}, "it ends": {"false"}, "it does not serve": {os.Args[0], workerArgument, "x", "y"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := worker.NewPool(worker.Options{Command: command, Size: 1, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}})
			defer pool.Close()
			_, err := pool.Package(compile(t, "")).Evaluate(t.Context(), session("town", nil))
			if _, ok := errors.AsType[*program.UnavailableError](err); !ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhoDoesNotWaitAnyMoreHoldsNoWorker(t *testing.T) {
	t.Parallel()
	in := newPool(t, 1).Package(compile(t, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var running sync.WaitGroup
	for range 5 {
		running.Go(func() {
			if _, err := in.Evaluate(ctx, session("mallory", map[string]any{"text": endless})); err == nil {
				t.Error("it ended")
			}
		})
	}
	running.Wait()
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	p := compile(b, "")
	in := newPool(b, 1).Package(p)
	for name, evaluate := range map[string]func(program.Session) (program.Rollout, error){
		"here":     p.Evaluate,
		"a worker": func(s program.Session) (program.Rollout, error) { return in.Evaluate(b.Context(), s) },
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if _, err := evaluate(session("town", map[string]any{"n": int64(i % 10)})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
