package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// runningReconciles knows the runningReconciles that are under way in a process, and how long each has gone on
// without an answer of the API server. An evaluation cannot be interrupted, and may never
// end; many writes take long and do end.
type runningReconciles struct {
	// limit is how long one may go on until the process counts as ill; 0 is for ever.
	limit time.Duration

	mu      sync.Mutex
	running map[*runningReconcile]bool
	// detached is how many go on without a worker.
	detached int
}

const (
	// maxDetached is how many steps go on without a worker in one process. Each may use a
	// processor and memory for ever.
	maxDetached = 4
)

// A runningReconcile is a step that is under way.
type runningReconcile struct {
	kind    string
	request ctrl.Request
	// answered is when the API server has last answered, or the step began, in nanoseconds.
	answered atomic.Int64
	// evaluating is how long packages were evaluated.
	evaluating atomic.Int64
	warn       *time.Timer
}

func newRunningReconciles(limit time.Duration) *runningReconciles {
	return &runningReconciles{limit: limit, running: map[*runningReconcile]bool{}}
}

// begin notes that a step begins, and returns its context.
func (s *runningReconciles) begin(ctx context.Context, kind string, req ctrl.Request) (context.Context, *runningReconcile) {
	r := &runningReconcile{kind: kind, request: req}
	r.noteAnswer()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn = time.AfterFunc(slowReconcile, func() { s.warn(log.FromContext(ctx), r) })
	s.running[r] = true
	return context.WithValue(ctx, runningKey{}, r), r
}

// end notes that a step has ended.
func (s *runningReconciles) end(r *runningReconcile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn.Stop()
	delete(s.running, r)
}

// detach reports whether one more step may go on without a worker; attach says that it
// has ended.
func (s *runningReconciles) detach() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detached >= maxDetached {
		return false
	}
	s.detached++
	return true
}

func (s *runningReconciles) attach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detached--
}

// errHung is what is wrong with a process one of whose steps does not end.
var errHung = errors.New("a step does not end")

// check errors when a step has gone on for longer than the limit.
func (s *runningReconciles) check(*http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.running {
		if s.limit > 0 && r.sinceAnswer() > s.limit {
			return fmt.Errorf("%s %s: %w", r.kind, r.request, errHung)
		}
	}
	return nil
}

// epoch is what answers are counted from: the clock of the wall may be set, and would make
// all steps hang at once.
var epoch = time.Now()

// noteAnswer notes that the API server has answered.
func (r *runningReconcile) noteAnswer() { r.answered.Store(int64(time.Since(epoch))) }

// sinceAnswer returns how long the step has gone on without an answer of the API server.
func (r *runningReconcile) sinceAnswer() time.Duration {
	return time.Since(epoch) - time.Duration(r.answered.Load())
}

// warn tells a log once that a step is slow.
func (s *runningReconciles) warn(l logr.Logger, r *runningReconcile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slowReconcile - r.sinceAnswer()
	switch {
	case !s.running[r]:
		return // it has ended just now
	case left > 0:
		r.warn.Reset(left)
		return
	}
	l.Info("a step is slow: what it works on may be too large, or its evaluation may never end", "after", slowReconcile.String())
}

// runningKey is where the context of a step has what is known of it.
type runningKey struct{}

// runningOf returns the step that a context is of, or nil.
func runningOf(ctx context.Context) *runningReconcile {
	r, _ := ctx.Value(runningKey{}).(*runningReconcile)
	return r
}

// timedPackage is a package whose evaluations are part of a step. All else that it can do, such as
// saying where a field is written, is as it is.
type timedPackage struct {
	*program.Memo

	step *runningReconcile
}

var (
	_ reconcile.Package = timedPackage{}
	_ rollout.Locator   = timedPackage{}
)

// Evaluate implements rollout.Evaluator.
func (t timedPackage) Evaluate(s program.Session) (program.Rollout, error) {
	if t.step == nil {
		return t.Memo.Evaluate(s)
	}
	began := time.Now()
	defer func() { t.step.evaluating.Add(int64(time.Since(began))) }()
	return t.Memo.Evaluate(s)
}

// noteAnswers makes the steps know what the API server answers.
func noteAnswers(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(rt http.RoundTripper) http.RoundTripper { return answerTransport{rt} })
	return out
}

// answerTransport is a transport that notes each answer.
type answerTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	out, err := a.RoundTripper.RoundTrip(req)
	if r := runningOf(req.Context()); r != nil {
		r.noteAnswer()
	}
	return out, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (a answerTransport) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }
