package reconcile

import "github.com/go-logr/logr"

// withLogLevel returns a log that shows debug messages of a resource whose annotation requests them,
// whatever the level of the process.
func withLogLevel(log logr.Logger, level string) logr.Logger {
	if level != "debug" || log.GetSink() == nil {
		return log
	}
	return log.WithSink(debugSink{log.GetSink()})
}

// debugSink is a sink that logs every message at level 0.
type debugSink struct{ logr.LogSink }

// Enabled implements logr.LogSink.
func (debugSink) Enabled(int) bool { return true }

// Info implements logr.LogSink.
func (r debugSink) Info(_ int, msg string, keysAndValues ...any) {
	r.LogSink.Info(0, msg, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (r debugSink) WithValues(keysAndValues ...any) logr.LogSink {
	return debugSink{r.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (r debugSink) WithName(name string) logr.LogSink { return debugSink{r.LogSink.WithName(name)} }
