package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"operetta.dev/engine/worker"
	"operetta.dev/test/machine"
)

func TestWhoExaminesHasTheRoomOfOneWorker(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(compile(t, ""))
	hostile, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for hostile.Err() == nil {
				_, _ = in.Evaluate(hostile, session("mallory", map[string]any{"text": endless}))
			}
		})
	}
	for range 3 {
		release, err := pool.Lend(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := pool.Processes(); n > 1 {
			t.Errorf("there are %d workers beside who examines", n)
		}
		if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
			t.Errorf("others: %v", err)
		}
		release()
		release() // a second time changes nothing
	}
	stop()
	running.Wait()
}

func TestSeveralWhoExamineShareTheRoomOfOneWorker(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 3)
	in := pool.Package(compile(t, ""))
	var all []func()
	for range 5 {
		release, err := pool.Lend(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, release)
	}
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
	for _, release := range all {
		release()
	}
}

func TestAPoolOfOneWorkerEvaluatesWhileAPackageIsExamined(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 1)
	in := pool.Package(compile(t, ""))
	release, err := pool.Lend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
}

// While a package is examined there is one worker less, and a namespace may have one less as well.
func TestNoNamespaceHasAllWorkersWhileAPackageIsExamined(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 3)
	in := pool.Package(compile(t, ""))
	release, err := pool.Lend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	hostile, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { _, _ = in.Evaluate(hostile, session("mallory", map[string]any{"text": endless})) })
	}
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
	if n := pool.Busy("mallory"); n > 1 {
		t.Errorf("one namespace has %d of 2 workers", n)
	}
	stop()
	running.Wait()
}

// TestTheLastWorkerIsForOthersWhileAPackageIsExamined: what hangs would hold up whoever comes next. The workers cannot be started, so that an
// error says when one should have been.
func TestTheLastWorkerIsForOthersWhileAPackageIsExamined(t *testing.T) {
	t.Parallel()
	nobody, suspect, slow := func(*worker.Pool, string) {}, (*worker.Pool).Suspect, (*worker.Pool).Slow
	for name, tc := range map[string]struct {
		reason string
		size   int
		noted  func(pool *worker.Pool, namespace string)
		// examined is for how long a package is examined.
		examined time.Duration
		want     time.Duration
	}{
		"nothing is examined":         {"suspects have one of two workers", 2, suspect, 0, 0},
		"somebody else":               {"the last worker is for edits", 2, nobody, time.Minute, 0},
		"a suspect":                   {"it would hold up edits until its limit, and is not held back for ever", 2, suspect, time.Hour, 2 * time.Minute},
		"who takes long":              {"an edit would wait for seconds, too", 2, slow, time.Minute, 30 * time.Second},
		"until nothing is examined":   {"there are two workers again", 2, suspect, time.Second, time.Second},
		"of three workers, one less":  {"others have the second one", 3, suspect, time.Minute, 0},
		"there never was another one": {"a pool of one worker lends none", 1, suspect, time.Minute, 0},
		"a suspect in the meantime":   {"the package is examined no more", 2, suspect, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pool := worker.NewPool(worker.Options{Size: tc.size, Command: []string{"/there/is/no/such/program"}})
				defer pool.Close()
				tc.noted(pool, "mallory")
				if tc.examined > 0 {
					release, err := pool.Lend(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer time.AfterFunc(tc.examined, release).Stop()
				}
				began := time.Now()
				if err := pool.Acquire(t.Context(), "mallory"); err == nil {
					t.Fatal("a program that is not there has started")
				}
				if took := time.Since(began); took != tc.want {
					t.Errorf("%s: it has waited for %s, not %s", tc.reason, took, tc.want)
				}
			})
		})
	}
}

// TestRoomIsLentOnceALastWorkerIsLeftForEdits: a suspect, or somebody slow, has a worker for ten seconds when a package is to be examined. The workers cannot be
// started, so that an error says when one should have been.
func TestRoomIsLentOnceALastWorkerIsLeftForEdits(t *testing.T) {
	t.Parallel()
	nobody, suspect, slow := func(*worker.Pool, string) {}, (*worker.Pool).Suspect, (*worker.Pool).Slow
	const busy = 10 * time.Second
	for name, tc := range map[string]struct {
		reason string
		size   int
		noted  func(pool *worker.Pool, namespace string)
		// lent is after how long there is room, and edited after how long somebody else has a worker, who comes at the same time.
		lent, edited time.Duration
	}{
		"somebody else is busy":       {"its evaluation takes milliseconds", 2, nobody, 0, busy},
		"a suspect is busy":           {"an edit would wait until its limit", 2, suspect, busy, 0},
		"who takes long is busy":      {"an edit would wait for seconds", 2, slow, busy, 0},
		"one of three":                {"another one is left", 3, suspect, 0, 0},
		"there never was another one": {"a pool of one worker lends none", 1, suspect, 0, busy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pool := worker.NewPool(worker.Options{Size: tc.size, Command: []string{"/there/is/no/such/program"}})
				defer pool.Close()
				tc.noted(pool, "mallory")
				defer time.AfterFunc(busy, pool.Hold("mallory")).Stop()
				began := time.Now()
				var all sync.WaitGroup
				defer all.Wait()
				all.Go(func() {
					release, err := pool.Lend(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if took := time.Since(began); took != tc.lent {
						t.Errorf("%s: there is room after %s, not %s", tc.reason, took, tc.lent)
					}
					defer time.AfterFunc(time.Minute, release)
				})
				synctest.Wait()
				_ = pool.Acquire(t.Context(), "town")
				if took := time.Since(began).Truncate(time.Second); took != tc.edited {
					t.Errorf("%s: an edit has waited for %s, not %s", tc.reason, took, tc.edited)
				}
			})
		})
	}
}

func TestWhoDoesNotWaitForRoomAnyMoreHasNone(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(compile(t, ""))
	var running sync.WaitGroup
	for _, namespace := range []string{"mallory", "trudy"} {
		running.Go(func() { _, _ = in.Evaluate(t.Context(), session(namespace, map[string]any{"text": endless})) })
	}
	machine.Eventually(t, "both to run", func() bool { return pool.Processes() >= 2 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := pool.Lend(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	running.Wait()
	running.Go(func() { _, _ = in.Evaluate(t.Context(), session("mallory", map[string]any{"text": endless})) })
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
	running.Wait()
}

func TestAClosedPoolLendsNothing(t *testing.T) {
	t.Parallel()
	pool := worker.NewPool(worker.Options{Size: 2})
	pool.Close()
	if _, err := pool.Lend(t.Context()); err == nil {
		t.Error("it lends")
	}
}

// TestAShortQueueStartsNoSecondWorker: a second one takes twice the memory, and its start as long as many
// evaluations.
func TestAShortQueueStartsNoSecondWorker(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 4)
	in := pool.Package(compile(t, ""))
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			if _, err := in.Evaluate(t.Context(), session("town", map[string]any{"n": int64(i)})); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	t.Logf("there are %d workers", pool.Processes())
	for _, namespace := range []string{"mallory", "trudy", "eve"} {
		running.Go(func() {
			_, _ = in.Evaluate(t.Context(), session(namespace, map[string]any{"text": endless}))
		})
	}
	machine.Eventually(t, "a second worker for what takes long", func() bool { return pool.Processes() >= 2 })
	running.Wait()
}

// TestNoNamespaceHasAllWorkers: nobody knows that its evaluations hang before the first has cost a worker.
func TestNoNamespaceHasAllWorkers(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(compile(t, ""))
	var warm sync.WaitGroup
	for _, namespace := range []string{"town", "village"} {
		warm.Go(func() { _, _ = in.Evaluate(t.Context(), session(namespace, map[string]any{"n": int64(500)})) })
	}
	warm.Wait()
	hostile, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { _, _ = in.Evaluate(hostile, session("mallory", map[string]any{"text": endless})) })
	}
	machine.Eventually(t, "a worker that hangs", func() bool { return pool.Busy("mallory") >= 1 })
	if n := pool.Busy("mallory"); n != 1 {
		t.Errorf("one namespace has %d workers", n)
	}
	if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Error(err)
	}
	stop()
	running.Wait()
}

// TestASuspectCostsNoWorkerThatOthersUse: the next of the others would wait until a new one has loaded the package.
func TestASuspectCostsNoWorkerThatOthersUse(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 3)
	in := pool.Package(compile(t, ""))
	evaluate := func(namespace string, spec map[string]any) error {
		_, err := in.Evaluate(t.Context(), session(namespace, spec))
		machine.Eventually(t, "all workers to do nothing", func() bool { return pool.Busy(namespace) == 0 && pool.Processes() == len(pool.Idle()) })
		return err
	}
	if err := evaluate("town", nil); err != nil {
		t.Fatal(err)
	}
	others := pool.Idle()
	pool.Suspect("mallory")
	for _, row := range []struct {
		reason string
		spec   map[string]any
		fails  bool
	}{
		{"it may cost those that there are", nil, false},
		{"it has one of its own", map[string]any{"text": endless}, true},
		{"it gets another one", map[string]any{"n": int64(3)}, false},
		{"that one hangs, too", map[string]any{"text": endless}, true},
	} {
		if err := evaluate("mallory", row.spec); (err != nil) != row.fails {
			t.Fatalf("%s: %v", row.reason, err)
		}
		for _, pid := range others {
			if idle := pool.Idle(); !slices.Contains(idle, pid) {
				t.Fatalf("%s: of the workers %v that others use, there are %v", row.reason, others, idle)
			}
		}
	}
}
