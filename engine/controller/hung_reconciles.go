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
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/worker"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// runningReconciles has the reconciles that run in a process, and how long each has gone on
// without an answer of the API server. Many writes take long and do end.
type runningReconciles struct {
	// limit is how long a reconcile may go on before the process is unhealthy; 0 is forever.
	limit time.Duration

	mu      sync.Mutex
	running map[*runningReconcile]bool
}

// A runningReconcile is a reconcile that has not ended.
type runningReconcile struct {
	kind    string
	request ctrl.Request
	// answered is when the API server last answered, or the reconcile began, in nanoseconds since epoch.
	answered atomic.Int64
	warn     *time.Timer
}

func newRunningReconciles(limit time.Duration) *runningReconciles {
	return &runningReconciles{limit: limit, running: map[*runningReconcile]bool{}}
}

// begin notes that a reconcile begins, and returns its context.
func (s *runningReconciles) begin(ctx context.Context, kind string, req ctrl.Request) (context.Context, *runningReconcile) {
	r := &runningReconcile{kind: kind, request: req}
	r.noteAnswer()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn = time.AfterFunc(slowReconcile, func() { s.warn(log.FromContext(ctx), r) })
	s.running[r] = true
	return context.WithValue(worker.WithRollout(ctx), runningKey{}, r), r
}

// end notes that a reconcile has ended.
func (s *runningReconciles) end(r *runningReconcile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.warn.Stop()
	delete(s.running, r)
}

// errHung is the error of the health check while a reconcile does not end.
var errHung = errors.New("a reconcile does not end")

// check is a health check. It errors if a reconcile has gone on for longer than the limit.
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

// epoch is the time that answers are counted from. The wall clock may be set, and with that as the
// reference all reconciles would hang at once.
var epoch = time.Now()

// noteAnswer notes that the API server has answered.
func (r *runningReconcile) noteAnswer() { r.answered.Store(int64(time.Since(epoch))) }

// sinceAnswer returns how long the reconcile has gone on without an answer of the API server.
func (r *runningReconcile) sinceAnswer() time.Duration {
	return time.Since(epoch) - time.Duration(r.answered.Load())
}

// warn logs once that a reconcile is slow.
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
	l.Info("a reconcile is slow: it has had no answer from the API server for this long, so either that hangs, or the resource is too large", "after", slowReconcile.String())
}

// runningKey is the key of the runningReconcile in the context of a reconcile.
type runningKey struct{}

// runningOf returns the reconcile of a context, or nil.
func runningOf(ctx context.Context) *runningReconcile {
	r, _ := ctx.Value(runningKey{}).(*runningReconcile)
	return r
}

// An observedPackage is a package that notes how long it is evaluated in a reconcile, and the kinds
// that it renders.
type observedPackage struct {
	boundPackage

	objects *watch.Cluster
}

var (
	_ reconcile.Package = observedPackage{}
	_ rollout.Predictor = observedPackage{}
)

// Evaluate implements rollout.Evaluator.
func (p observedPackage) Evaluate(s program.Session) (program.Rollout, error) {
	capsule.Evaluated(p.ctx)
	out, err := p.boundPackage.Evaluate(s)
	p.objects.NoteRendered(out)
	return out, err
}

// Predict implements rollout.Predictor.
func (p observedPackage) Predict(s program.Session) (program.Rollout, bool) {
	out, known := p.Evaluator.Predict(s)
	if known { // leaving a resource alone because of it is a decision too
		capsule.Evaluated(p.ctx)
	}
	p.objects.NoteRendered(out)
	return out, known
}

// noteAnswers returns a configuration whose clients note the answers of the API server.
func noteAnswers(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return answerTransport{tracingTransport{measured.Requests(rt)}}
	})
	return out
}

// An answerTransport notes each answer in the reconcile of the request's context.
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
