package worker_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"operetta.dev/engine/template"
	"operetta.dev/engine/worker"
	"operetta.dev/test/machine"
)

func TestWhoTakesLongLetsOthersPass(t *testing.T) {
	t.Parallel()
	const moment, long = time.Second, time.Minute
	waiter := func(tenant string, since time.Duration) worker.Waiter {
		return worker.Waiter{Tenant: tenant, Since: since}
	}
	for name, tc := range map[string]struct {
		reason  string
		size    int
		busy    map[string]int
		slow    []string
		suspect []string
		waiting []worker.Waiter
		want    string
	}{
		"nobody is slow": {"they came in that order", 2, nil, nil, nil,
			[]worker.Waiter{waiter("dave", moment), waiter("town", moment)}, "dave"},
		"one is slow": {"an edit takes milliseconds, and would wait for seconds", 2, nil, []string{"dave"}, nil,
			[]worker.Waiter{waiter("dave", moment), waiter("town", moment)}, "town"},
		"one is slow and has waited for long": {"others who keep coming cannot hold it back for ever", 2, nil, []string{"dave"}, nil,
			[]worker.Waiter{waiter("dave", long), waiter("town", moment)}, "dave"},
		"one is slow, and nobody else waits": {"nobody needs the worker", 2, nil, []string{"dave"}, nil,
			[]worker.Waiter{waiter("dave", moment)}, "dave"},
		"another slow one has a worker": {"the last worker is left to those who need it for milliseconds", 2, map[string]int{"dave": 1}, []string{"dave", "eve"}, nil,
			[]worker.Waiter{waiter("eve", long)}, ""},
		"a suspect has a worker": {"what hangs and what is slow would have all workers", 2, map[string]int{"erin": 1}, []string{"dave"}, []string{"erin"},
			[]worker.Waiter{waiter("dave", long)}, ""},
		"another slow one has one of three": {"two of three are for whoever needs them", 3, map[string]int{"dave": 1}, []string{"dave", "eve"}, nil,
			[]worker.Waiter{waiter("eve", moment)}, "eve"},
		"slow ones have two of three": {"one is left to others", 3, map[string]int{"dave": 1, "eve": 1}, []string{"dave", "eve", "fay"}, nil,
			[]worker.Waiter{waiter("fay", long), waiter("town", moment)}, "town"},
		"there is one worker": {"nothing can be left to others", 1, nil, []string{"dave"}, nil,
			[]worker.Waiter{waiter("dave", moment)}, "dave"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := tc.busy
			if busy == nil {
				busy = map[string]int{}
			}
			if got := worker.NewPool(worker.Options{Size: tc.size}).Next(busy, tc.slow, tc.suspect, tc.waiting...); got != tc.want {
				t.Errorf("%s: %q is next, not %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAnEvaluationThatTakesLongIsNoted: its namespace is no suspect, whose templates would not be made any more.
func TestAnEvaluationThatTakesLongIsNoted(t *testing.T) {
	machine.Serial(t)
	t.Parallel()
	p, large := compile(t, ""), map[string]any{"n": int64(400)}
	evaluate := func(pool *worker.Pool, namespace string, spec map[string]any) time.Duration {
		t.Helper()
		ctx := worker.WithRollout(t.Context())
		if _, err := pool.Package(p).Evaluate(ctx, session(namespace, spec)); err != nil {
			t.Fatal(err)
		}
		return worker.ProcessorTimeSpent(ctx)
	}
	unhurried := newPool(t, 1)
	evaluate(unhurried, "dave", large)
	used := evaluate(unhurried, "dave", large) // the first one of a process takes longer
	pool := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], workerArgument}, Size: 1, Limits: worker.Limits{Memory: 256 << 20, Time: 3 * used}, Patience: testPatience,
	})
	t.Cleanup(pool.Close)
	evaluate(pool, "dave", large)
	evaluate(pool, "town", map[string]any{"n": int64(1)})
	if pool.IsSlow("town") || !pool.IsSlow("dave") || pool.Suspects("dave") {
		t.Errorf("of a limit of %s: town is slow: %t, dave is slow: %t, and a suspect: %t", 3*used, pool.IsSlow("town"), pool.IsSlow("dave"), pool.Suspects("dave"))
	}
}

// TestWhoseTemplateIsTooMuchLetsOthersPass: the template may be at fault and not the resource, so its namespace is no suspect; but the evaluation
// without a template comes next, and may hang as well.
func TestWhoseTemplateIsTooMuchLetsOthersPass(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(compile(t, ""))
	hanging := map[string]any{"text": endless}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _, _ = in.Compile(t.Context(), session("erin", hanging), template.Pins{}) })
	machine.Eventually(t, "a worker to compile", func() bool { return pool.Busy("erin") > 0 })
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil { // so that its last turn is later
		t.Fatal(err)
	}
	defer pool.Hold("fay")()
	ended := make(chan string, 2)
	evaluate := func(namespace string, spec map[string]any) {
		all.Go(func() {
			_, _ = in.Evaluate(t.Context(), session(namespace, spec))
			ended <- namespace
		})
	}
	evaluate("town", nil)
	machine.Eventually(t, "town to wait", func() bool { return pool.Waiting() > 0 || len(ended) > 0 })
	evaluate("erin", hanging)
	if first := <-ended; first != "town" {
		t.Errorf("%s is evaluated first", first)
	}
}
