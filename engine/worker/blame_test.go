package worker_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	f, openErr := os.OpenFile(arguments[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err := errors.Join(atErr, codeErr, err, openErr); err != nil {
		return err
	}
	_, err = f.WriteString(".")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return worker.Serve(&endingReader{os.Stdin, arguments[0], at, code}, os.Stdout, l)
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
	return p, func() int {
		starts, _ := os.ReadFile(file) // there is none before the first
		return len(starts)
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
			if got := worker.Spent(ctx); got != c.want {
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
	if got := worker.Spent(ctx); got < 8*testTime {
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
	if spent := worker.Spent(rollout); spent != 0 {
		t.Errorf("a plan of many resources would end at the limit of one rollout: %s were added to it", spent)
	}
	if _, err := in.Evaluate(rollout, session("town", map[string]any{"n": int64(2)})); err != nil {
		t.Fatal(err)
	}
	if worker.Spent(rollout) == 0 {
		t.Error("the evaluations of a rollout are not added up, so the test shows nothing")
	}
}
