package lifecycle

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"operetta.dev/engine/status"
)

// The annotations by which a person controls the reconciliation of one resource.
const (
	// AnnotationPaused set to "true" stops everything but deletion. Setting it to
	// anything else, or removing it, acts at once.
	AnnotationPaused = "operetta.dev/paused"
	// AnnotationReconcileAt asks for a reconcile whenever its value changes; the
	// value that was acted upon is in status.lastHandledReconcileAt.
	AnnotationReconcileAt = "operetta.dev/reconcile-at"
	// AnnotationSkipHooks set to "true" deletes a resource whose hooks before
	// deletion fail.
	AnnotationSkipHooks = "operetta.dev/skip-hooks"
	// AnnotationConfig holds configuration of the package for one resource, as YAML.
	AnnotationConfig = "operetta.dev/config"
	// AnnotationLogLevel set to "debug" logs every decision about this resource.
	AnnotationLogLevel = "operetta.dev/log-level"
)

// paused reports whether a person has paused the resource.
func (s *state) paused() bool { return s.cr.GetAnnotations()[AnnotationPaused] == "true" }

// asked reports whether a person has asked for a reconcile since the last one.
func (s *state) asked() bool {
	at := s.cr.GetAnnotations()[AnnotationReconcileAt]
	return at != "" && at != s.before["lastHandledReconcileAt"]
}

// pause says that the resource is paused, and does nothing else.
func (s *state) pause(ctx context.Context) (time.Duration, error) {
	after := status.Paused(s.before, s.cr.GetGeneration(), s.Now())
	if !status.Same(s.before, after) {
		if err := s.write(ctx, after); err != nil {
			return 0, err
		}
	}
	return 0, s.patchesPaused(ctx)
}

// leveled returns a log that shows the details of a resource whose annotation asks
// for them, whatever the level of the process.
func leveled(log logr.Logger, level string) logr.Logger {
	if level != "debug" || log.GetSink() == nil {
		return log
	}
	return log.WithSink(raised{log.GetSink()})
}

// raised is a sink that takes every detail for information.
type raised struct{ logr.LogSink }

// Enabled implements logr.LogSink.
func (raised) Enabled(int) bool { return true }

// Info implements logr.LogSink.
func (r raised) Info(_ int, msg string, keysAndValues ...any) {
	r.LogSink.Info(0, msg, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (r raised) WithValues(keysAndValues ...any) logr.LogSink {
	return raised{r.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (r raised) WithName(name string) logr.LogSink { return raised{r.LogSink.WithName(name)} }
