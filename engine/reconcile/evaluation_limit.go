package reconcile

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// An exceededEvaluation remembers that evaluations of a resource exceeded a limit. After a restart
// the status of the resource is what remembers it.
type exceededEvaluation struct {
	// cause is what the last of them resulted from, versions are the versions of their
	// sessions, and limit is what the last one exceeded; nil while none did.
	cause    string
	versions map[string]bool
	limit    *program.LimitError
	// retryAt is when the evaluation is tried again, and pause how long that is in all.
	retryAt  time.Time
	pause    time.Duration
	attempts attempts
}

// A limitedPackage is the package of one resource. It refuses an evaluation that would exceed a
// limit once more.
type limitedPackage struct {
	Package
	s *state
	// cause is what the rollout results from besides the live objects.
	cause string
	// retryAfter is when to try an evaluation again that was refused, or 0.
	retryAfter time.Duration
	// transient is what the last evaluation exceeded if it was only slow and was not tried
	// again since: it may have been the machine. It is nil otherwise.
	transient *program.LimitError
}

var _ rollout.Predictor = (*limitedPackage)(nil)

// Evaluate returns what the package says. It errors with a LimitError also when the same evaluation
// exceeded a limit before.
func (p *limitedPackage) Evaluate(session program.Session) (program.Rollout, error) {
	p.transient = nil
	// Hardly any resource has exceeded a limit, and then the version is not needed.
	version := sync.OnceValue(func() string { return p.Version(session) })
	if limit := p.remembered(version); limit != nil {
		return program.Rollout{}, limit
	}
	out, err := p.Package.Evaluate(session)
	limit, over := errors.AsType[*program.LimitError](err)
	if !over || !limit.Evaluated { // to count again costs nothing
		return out, err
	}
	p.remember(version(), limit)
	p.s.log.Info("an evaluation was beyond its limit", "limit", limit.Text, "again", p.retryAfter)
	return program.Rollout{}, limit
}

// Predict implements rollout.Predictor. Nothing is predicted of a resource whose evaluations have exceeded a limit.
func (p *limitedPackage) Predict(session program.Session) (program.Rollout, bool) {
	f, ok := p.Package.(rollout.Predictor)
	if !ok || len(p.s.memory.evaluation.versions) > 0 || p.s.limitInStatus() != nil {
		return program.Rollout{}, false
	}
	return f.Predict(session)
}

// remembered returns the limit that an evaluation would exceed again, or nil if it may be tried.
func (p *limitedPackage) remembered(version func() string) *program.LimitError {
	e, now := &p.s.memory.evaluation, p.s.Now()
	if e.versions == nil {
		e.versions = map[string]bool{}
		if limit := p.s.limitInStatus(); limit != nil {
			e.cause, e.versions[version()], e.limit = p.cause, true, limit
			e.pause, e.retryAt = limitedRetry, now.Add(limitedRetry)
		}
	}
	wait := time.Duration(0)
	if e.cause == p.cause && len(e.versions) > 0 && e.versions[version()] {
		wait = e.retryAt.Sub(now)
	}
	if evaluationLimit.forgotten(&e.attempts, now) {
		e.attempts = attempts{}
	}
	// Without an evaluation the hooks before deletion are lost. A deleted resource has one
	// evaluation that exceeds a limit at most, since its objects go then.
	if p.s.cr.GetDeletionTimestamp() == nil && evaluationLimit.exceeded(&e.attempts, now) {
		wait = max(wait, evaluationLimit.remaining(&e.attempts, now))
	}
	if wait <= 0 {
		return nil
	}
	p.retryLater(e, wait)
	return e.limit
}

// remember records that an evaluation has exceeded a limit.
func (p *limitedPackage) remember(version string, limit *program.LimitError) {
	e, now := &p.s.memory.evaluation, p.s.Now()
	if e.cause != p.cause {
		e.cause, e.versions, e.pause = p.cause, map[string]bool{}, 0
	}
	if e.versions[version] {
		e.pause = min(maxLimitedRetry, max(limitedRetry, 2*e.pause))
	} else {
		e.pause = limitedRetry
		evaluationLimit.happened(&e.attempts, now)
	}
	e.versions[version], e.limit = true, limit
	e.retryAt = now.Add(e.pause)
	p.retryLater(e, e.pause)
}

// retryLater schedules another try of the evaluation that exceeded a limit.
func (p *limitedPackage) retryLater(e *exceededEvaluation, wait time.Duration) {
	p.retryAfter = wait
	if e.limit.TooSlow && e.pause == limitedRetry {
		p.transient = e.limit
	}
}

// limitInStatus returns the limit that the status says an evaluation has exceeded, if it says so
// of what the resource and its package are now, and nil otherwise. A user who forges such a status
// delays the evaluation of their own resource only, and not for long. A deletion increments the
// generation, and the spec is the same.
func (s *subject) limitInStatus() *program.LimitError {
	_, digest := s.identify()
	was, _, _ := unstructured.NestedString(s.before, "package", "digest")
	observed, _, _ := unstructured.NestedInt64(s.before, "observedGeneration")
	same := observed == s.cr.GetGeneration() || s.cr.GetDeletionTimestamp() != nil && observed == s.cr.GetGeneration()-1
	if !same || was != digest || s.asked() {
		return nil
	}
	reason, message := status.StalledBy(s.before)
	switch reason {
	case status.ReasonEvaluationLimit, status.ReasonEvaluationTooSlow:
		return &program.LimitError{Evaluated: true, TooSlow: reason == status.ReasonEvaluationTooSlow, Text: message}
	default:
		return nil
	}
}
