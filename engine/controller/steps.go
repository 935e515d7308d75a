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

// steps knows the steps that are under way in a process, and how long each has gone on
// without an answer of the API server. An evaluation cannot be interrupted, and may never
// end; many writes take long and do end.
type steps struct {
	// limit is how long one may go on until the process counts as ill; 0 is for ever.
	limit time.Duration

	mu      sync.Mutex
	running map[*runningStep]bool
	// detached is how many go on without a worker.
	detached int
}

const (
	// maxDetached is how many steps go on without a worker in one process. Each may use a
	// processor and memory for ever.
	maxDetached = 4
)

// A runningStep is a step that is under way.
type runningStep struct {
	kind    string
	request ctrl.Request
	// answered is when the API server has last answered, or the step began, in nanoseconds.
	answered atomic.Int64
	// evaluating is how long packages were evaluated.
	evaluating atomic.Int64
	warn       *time.Timer
}

func newSteps(limit time.Duration) *steps {
	return &steps{limit: limit, running: map[*runningStep]bool{}}
}

// begin notes that a step begins, and returns its context.
func (s *steps) begin(ctx context.Context, kind string, req ctrl.Request) (context.Context, *runningStep) {
	r := &runningStep{kind: kind, request: req}
	r.beat()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn = time.AfterFunc(slowStep, func() { s.warn(log.FromContext(ctx), r) })
	s.running[r] = true
	return context.WithValue(ctx, stepKey{}, r), r
}

// end notes that a step has ended.
func (s *steps) end(r *runningStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn.Stop()
	delete(s.running, r)
}

// detach reports whether one more step may go on without a worker; attach says that it
// has ended.
func (s *steps) detach() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detached >= maxDetached {
		return false
	}
	s.detached++
	return true
}

func (s *steps) attach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detached--
}

// errHanging is what is wrong with a process one of whose steps does not end.
var errHanging = errors.New("a step does not end")

// check errors when a step has gone on for longer than the limit.
func (s *steps) check(*http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.running {
		if s.limit > 0 && r.hangs() > s.limit {
			return fmt.Errorf("%s %s: %w", r.kind, r.request, errHanging)
		}
	}
	return nil
}

// epoch is what answers are counted from: the clock of the wall may be set, and would make
// all steps hang at once.
var epoch = time.Now()

// beat notes that the API server has answered.
func (r *runningStep) beat() { r.answered.Store(int64(time.Since(epoch))) }

// hangs returns how long the step has gone on without an answer of the API server.
func (r *runningStep) hangs() time.Duration {
	return time.Since(epoch) - time.Duration(r.answered.Load())
}

// warn tells a log once that a step is slow.
func (s *steps) warn(l logr.Logger, r *runningStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slowStep - r.hangs()
	switch {
	case !s.running[r]:
		return // it has ended just now
	case left > 0:
		r.warn.Reset(left)
		return
	}
	l.Info("a step is slow: what it works on may be too large, or its evaluation may never end", "after", slowStep.String())
}

// stepKey is where the context of a step has what is known of it.
type stepKey struct{}

// stepOf returns the step that a context is of, or nil.
func stepOf(ctx context.Context) *runningStep {
	r, _ := ctx.Value(stepKey{}).(*runningStep)
	return r
}

// timed is a package whose evaluations are part of a step. All else that it can do, such as
// saying where a field is written, is as it is.
type timed struct {
	*program.Memo

	step *runningStep
}

var (
	_ reconcile.Package = timed{}
	_ rollout.Locator   = timed{}
)

// Evaluate implements rollout.Evaluator.
func (t timed) Evaluate(s program.Session) (program.Rollout, error) {
	if t.step == nil {
		return t.Memo.Evaluate(s)
	}
	began := time.Now()
	defer func() { t.step.evaluating.Add(int64(time.Since(began))) }()
	return t.Memo.Evaluate(s)
}

// noticeAnswers makes the steps know what the API server answers.
func noticeAnswers(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(rt http.RoundTripper) http.RoundTripper { return answers{rt} })
	return out
}

// answers is a transport that notes each answer.
type answers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	out, err := a.RoundTripper.RoundTrip(req)
	if r := stepOf(req.Context()); r != nil {
		r.beat()
	}
	return out, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (a answers) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }
