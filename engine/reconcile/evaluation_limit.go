package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// evaluationLimits remembers which evaluations were beyond a limit, by resource; its zero value is
// ready for use. After a restart the status of a resource remembers.
type evaluationLimits struct {
	mu sync.Mutex
	of map[types.NamespacedName]*exceededEvaluation
}

// A exceededEvaluation is what is known of the evaluations of one resource.
type exceededEvaluation struct {
	// cause is what the last one beyond a limit followed from, versions are the versions of
	// the sessions, and says is what was said.
	cause    string
	versions map[string]bool
	says     string
	// until is when it is tried again, and pause how long that is in all.
	until    time.Time
	pause    time.Duration
	attempts attempts
}

func (l *evaluationLimits) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, key)
}

// about returns what is known of a resource, and whether it was unknown. The caller has the
// lock.
func (l *evaluationLimits) about(key types.NamespacedName) (known *exceededEvaluation, fresh bool) {
	if l.of == nil {
		l.of = map[types.NamespacedName]*exceededEvaluation{}
	}
	known = l.of[key]
	if known == nil {
		known, fresh = &exceededEvaluation{versions: map[string]bool{}}, true
		l.of[key] = known
	}
	return known, fresh
}

// limitedPackage is the package of one resource, which is not evaluated again while it would be
// beyond a limit again.
type limitedPackage struct {
	Package
	s *state
	// cause is what a rollout follows from besides what is there.
	cause string
	// spent is what the evaluations of the rollout have taken.
	spent time.Duration
	// retryAfter is when to try retryAfter what was not evaluated now, or 0.
	retryAfter time.Duration
	// maybeTransient is what was said of the last evaluation if it may have been the machine that
	// was slow, as it was not tried again since; or "".
	maybeTransient string
}

// tookLonger is said of an evaluation that was too slow.
const tookLonger = "took longer than the limit of"

var _ rollout.Locator = (*limitedPackage)(nil)

// Evaluate returns what the package says. It errors with a LimitError also when that took
// too long, and when the same evaluation was beyond a limit before.
func (b *limitedPackage) Evaluate(session program.Session) (program.Rollout, error) {
	b.maybeTransient = ""
	version := b.Version(session)
	if says := b.remembered(version); says != "" {
		return program.Rollout{}, &program.LimitError{Evaluated: true, Text: says}
	}
	clock := b.s.Clock
	if clock == nil {
		clock = time.Now
	}
	begun := clock()
	out, err := b.Package.Evaluate(session)
	took := clock().Sub(begun)
	b.spent += took
	limit, over := errors.AsType[*program.LimitError](err)
	switch {
	case over && !limit.Evaluated:
		return out, err // to count again costs nothing
	case over:
	case took > slowEvaluation:
		limit = &program.LimitError{Evaluated: true, Text: fmt.Sprintf("its evaluation %s %s", tookLonger, slowEvaluation)}
	case b.spent > slowRollout:
		limit = &program.LimitError{Evaluated: true, Text: fmt.Sprintf("its evaluations %s %s for all of a rollout", tookLonger, slowRollout)}
	default:
		return out, err
	}
	b.remember(version, limit.Text)
	b.s.log.Info("an evaluation was beyond its limit", "limit", limit.Text, "took", took, "again", b.retryAfter)
	return program.Rollout{}, limit
}

// loadState returns what is said of an evaluation that is not to be tried now, or "".
func (b *limitedPackage) remembered(version string) string {
	l, now := &b.s.evaluationLimits, b.s.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at, fresh := l.about(b.s.key())
	if says := b.s.rememberedLimit(); fresh && says != "" {
		at.cause, at.versions[version], at.says = b.cause, true, says
		at.pause, at.until = limitedFirst, now.Add(limitedFirst)
	}
	wait := time.Duration(0)
	if at.cause == b.cause && at.versions[version] {
		wait = at.until.Sub(now)
	}
	if evaluationLimit.forgotten(&at.attempts, now) {
		at.attempts = attempts{}
	}
	// What is skipped because a deleted resource was not evaluated is lost, and it is evaluated
	// once at most that is beyond a limit: then its objects go.
	if b.s.cr.GetDeletionTimestamp() == nil && evaluationLimit.exceeded(&at.attempts, now) {
		wait = max(wait, at.attempts.latest().Add(max(at.attempts.pause, evaluationLimit.first)).Sub(now))
	}
	if wait <= 0 {
		return ""
	}
	b.retryAfter = wait
	b.doubt(at)
	return at.says
}

// remember remembers an evaluation that was beyond a limit.
func (b *limitedPackage) remember(version, says string) {
	l, now := &b.s.evaluationLimits, b.s.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at, _ := l.about(b.s.key())
	if at.cause != b.cause {
		at.cause, at.versions, at.pause = b.cause, map[string]bool{}, 0
	}
	if at.versions[version] {
		at.pause = min(limitedLast, max(limitedFirst, 2*at.pause))
	} else {
		at.pause = limitedFirst
		evaluationLimit.happened(&at.attempts, now)
	}
	at.versions[version], at.says = true, says
	at.until = now.Add(at.pause)
	b.retryAfter = at.pause
	b.doubt(at)
}

func (b *limitedPackage) doubt(at *exceededEvaluation) {
	if at.pause == limitedFirst && strings.Contains(at.says, tookLonger) {
		b.maybeTransient = at.says
	}
}

// Locate implements rollout.Locator.
func (b *limitedPackage) Locate(s program.Session, component, object, path string) fault.Position {
	if l, ok := b.Package.(rollout.Locator); ok {
		return l.Locate(s, component, object, path)
	}
	return fault.Position{}
}

// rememberedLimit returns what the status says of an evaluation beyond a limit, if it is
// about what the resource and its package are now. Whoever forges it keeps nobody's
// resource from being evaluated but their own, and not for long. The deletion of a
// resource is a generation of its own, with the same spec.
func (s *state) rememberedLimit() string {
	_, digest := s.identify()
	was, _, _ := unstructured.NestedString(s.before, "package", "digest")
	observed, _, _ := unstructured.NestedInt64(s.before, "observedGeneration")
	same := observed == s.cr.GetGeneration() || s.cr.GetDeletionTimestamp() != nil && observed == s.cr.GetGeneration()-1
	if !same || was != digest || s.asked() {
		return ""
	}
	return status.Stalled(s.before, status.ReasonEvaluationLimit)
}
