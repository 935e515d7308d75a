package worker_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
	"operetta.dev/engine/worker"
	"operetta.dev/test/machine"
)

// endingArgument is the first argument of this program when it is a worker that ends itself. The next ones are
// a text, a number n and an exit code: it ends when it reads the text the n-th time. The one after them is a file
// that gets a byte for each such worker.
const endingArgument = "end"

// An endingReader ends this process when it has read a text so many times.
type endingReader struct {
	io.Reader
	text     string
	at, code int
}

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if bytes.Contains(p[:n], []byte(r.text)) {
		if r.at--; r.at <= 0 {
			os.Exit(r.code)
		}
	}
	return n, err
}

// serveAndEnd is what a worker does that ends itself.
func serveAndEnd(arguments []string) error {
	at, atErr := strconv.Atoi(arguments[1])
	code, codeErr := strconv.Atoi(arguments[2])
	l, err := worker.ParseLimits(arguments[4], arguments[5])
	if err := errors.Join(atErr, codeErr, err, noteStart(arguments[3])); err != nil {
		return err
	}
	return worker.Serve(&endingReader{os.Stdin, arguments[0], at, code}, os.Stdout, l)
}

// noteStart adds a byte to the file for starts.
func noteStart(file string) error {
	f, err := os.OpenFile(filepath.Clean(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(".")
	return errors.Join(err, f.Close())
}

// countStarts returns how many workers have noted their start.
func countStarts(file string) int {
	starts, _ := os.ReadFile(filepath.Clean(file)) // there is none before the first
	return len(starts)
}

// newEndingPool returns a pool of one worker that ends itself when it reads a text the n-th time, and a function
// that returns how many were started.
func newEndingPool(t *testing.T, text string, n, code int) (*worker.Pool, func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "starts")
	p := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], endingArgument, text, strconv.Itoa(n), strconv.Itoa(code), file},
		Size:    1, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}, Patience: testPatience,
	})
	t.Cleanup(p.Close)
	return p, func() int { return countStarts(file) }
}

// wornArgument is the first argument of this program when it is a worker that is replaced at other limits than most. The
// next ones are the number of evaluations, the bytes that a garbage collection leaves, and the file for starts.
const wornArgument = "wear"

// serveUntilWorn is what such a worker does.
func serveUntilWorn(arguments []string) error {
	evaluations, evaluationsErr := strconv.Atoi(arguments[0])
	live, liveErr := strconv.ParseUint(arguments[1], 10, 64)
	l, err := worker.ParseLimits(arguments[3], arguments[4])
	if err := errors.Join(evaluationsErr, liveErr, err, noteStart(arguments[2])); err != nil {
		return err
	}
	runtime.GC() // a small worker may have left no garbage to collect yet
	return worker.ServeUntil(os.Stdin, os.Stdout, l, evaluations, live)
}

// CUE keeps every label for as long as the process runs.
func TestAWorkerIsReplacedByWhatItHasDoneAndKept(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	const never, evaluated = 1 << 40, 7
	for _, row := range []struct {
		reason            string
		evaluations, live int
		starts            int
	}{
		{"it has done and kept little", never, never, 1},
		{"each has three evaluations, and seven are wanted", 3, never, 3},
		{"each has too much in its memory once it has loaded the package, which is done once before the first evaluation", never, 1, evaluated + 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "starts")
			pool := worker.NewPool(worker.Options{
				Command: []string{os.Args[0], wornArgument, strconv.Itoa(row.evaluations), strconv.Itoa(row.live), file},
				Size:    1, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}, Patience: testPatience, IdleTime: time.Hour,
			})
			t.Cleanup(pool.Close)
			in := pool.Package(p)
			for i := range int64(evaluated) {
				if _, err := in.Evaluate(t.Context(), session("town", map[string]any{"n": i})); err != nil {
					t.Fatal(err)
				}
			}
			machine.Eventually(t, "the starts that are wanted", func() bool { return countStarts(file) >= row.starts })
			if got := countStarts(file); got != row.starts {
				t.Errorf("%d workers were started, want %d", got, row.starts)
			}
		})
	}
}

func TestAWorkerThatNobodyNeedsEnds(t *testing.T) {
	t.Parallel()
	pool := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], workerArgument}, Size: 2, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}, Patience: testPatience, IdleTime: time.Millisecond,
	})
	t.Cleanup(pool.Close)
	in := pool.Package(compile(t, ""))
	for range 2 {
		if _, err := in.Evaluate(t.Context(), session("town", nil)); err != nil {
			t.Fatal(err)
		}
		machine.Eventually(t, "the end of all workers", func() bool { return pool.Processes() == 0 })
	}
}

func TestAWorkerThatLoadedTooMuchIsReplaced(t *testing.T) {
	t.Parallel()
	pool, starts := newEndingPool(t, "no request has this text", 1, 1)
	p := compile(t, "")
	for range 20 {
		pool.Package(p)
	}
	machine.Eventually(t, "a second worker to load what the first one has", func() bool { return starts() >= 2 })
}

func TestNobodyIsBlamedForMemoryThatOthersHaveTaken(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	for name, c := range map[string]struct {
		endsAt, code  int
		over, suspect bool
	}{
		"a worker that others have used":          {2, worker.ExitMemory, false, false},
		"a new worker":                            {1, worker.ExitMemory, true, true},
		"a worker whose stack others do not fill": {2, worker.ExitStack, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newEndingPool(t, "corner", c.endsAt, c.code)
			in := pool.Package(p)
			if c.endsAt > 1 {
				if _, err := in.Evaluate(t.Context(), session("others", nil)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := in.Evaluate(t.Context(), session("town", nil))
			if _, over := errors.AsType[*program.LimitError](err); over != c.over || err != nil && !over {
				t.Errorf("got %v", err)
			}
			if got := pool.Suspects("town"); got != c.suspect {
				t.Errorf("the namespace is suspect: %t, want %t", got, c.suspect)
			}
		})
	}
}

func TestWhatWasKilledCountsAsTime(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	for name, c := range map[string]struct {
		spec    map[string]any
		compile bool
		want    time.Duration
	}{
		"an evaluation":                      {map[string]any{"text": endless}, false, testTime},
		"a template, and then an evaluation": {map[string]any{"text": endless}, true, 2 * testTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, ctx := newPool(t, 1).Package(p), worker.WithRollout(t.Context())
			var err error
			if c.compile {
				_, err = in.Compile(ctx, session("town", c.spec), template.Pins{})
			} else {
				_, err = in.Evaluate(ctx, session("town", c.spec))
			}
			if _, over := errors.AsType[*program.LimitError](err); !over {
				t.Fatalf("got %v, want a limit", err)
			}
			if got := worker.ProcessorTimeSpent(ctx); got != c.want {
				t.Errorf("it counts as %s, want %s", got, c.want)
			}
		})
	}
}

// The limit of a rollout is for its evaluations: a package with many layers has a template for each.
func TestTemplatesThatTakeTooMuchDoNotEndARollout(t *testing.T) {
	t.Parallel()
	pool, _ := newEndingPool(t, "Compile", 1, worker.ExitTime)
	in, ctx := pool.Package(compile(t, "")), worker.WithRollout(t.Context())
	for i := range int64(8) {
		if _, err := in.Compile(ctx, session("town", map[string]any{"n": i}), template.Pins{}); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
	}
	if got := worker.ProcessorTimeSpent(ctx); got < 8*testTime {
		t.Errorf("it counts as %s", got)
	}
}

func TestATemplateThatTakesTooMuchMakesNobodySuspect(t *testing.T) {
	t.Parallel()
	p := compile(t, "")
	for name, code := range map[string]int{"it exceeds a limit": worker.ExitTime, "it ends for an unknown reason": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newEndingPool(t, "Compile", 1, code)
			if _, err := pool.Package(p).Compile(t.Context(), session("town", nil), template.Pins{}); err != nil {
				t.Error(err)
			}
			if pool.Suspects("town") {
				t.Error("the namespace is suspect")
			}
		})
	}
}

func TestAPlanMakesNoNamespaceSuspect(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 1)
	in := pool.Package(compile(t, ""))
	_, err := in.Evaluate(worker.WithPlan(t.Context()), session("town", map[string]any{"text": endless}))
	if _, over := errors.AsType[*program.LimitError](err); !over {
		t.Fatalf("got %v, want a limit", err)
	}
	if pool.Suspects("town") {
		t.Error("a version that nobody serves has made the namespace suspect")
	}
	if !pool.Suspects("plan of town") {
		t.Error("the plan may take workers from all others")
	}
}

func TestTheEvaluationsOfAPlanHaveNoLimitTogether(t *testing.T) {
	t.Parallel()
	rollout := worker.WithRollout(t.Context())
	in := newPool(t, 1).Package(compile(t, ""))
	if _, err := in.Evaluate(worker.WithPlan(rollout), session("town", nil)); err != nil {
		t.Fatal(err)
	}
	if spent := worker.ProcessorTimeSpent(rollout); spent != 0 {
		t.Errorf("a plan of many resources would end at the limit of one rollout: %s were added to it", spent)
	}
	if _, err := in.Evaluate(rollout, session("town", map[string]any{"n": int64(2)})); err != nil {
		t.Fatal(err)
	}
	if worker.ProcessorTimeSpent(rollout) == 0 {
		t.Error("the evaluations of a rollout are not added up, so the test shows nothing")
	}
}
