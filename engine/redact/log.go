package redact

import (
	"fmt"

	"github.com/go-logr/logr"
)

// Log returns a log that says what Text returns.
func (r *Redactor) Log(log logr.Logger) logr.Logger {
	if r == nil || log.GetSink() == nil {
		return log
	}
	inner := log.GetSink()
	if deeper, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deeper.WithCallDepth(1)
	}
	return log.WithSink(sink{inner, r})
}

// sink is a sink behind a Redactor.
type sink struct {
	logr.LogSink
	redactor *Redactor
}

// Info implements logr.LogSink.
func (s sink) Info(level int, message string, keysAndValues ...any) {
	s.LogSink.Info(level, s.redactor.Text(message), s.all(keysAndValues)...)
}

// Error implements logr.LogSink.
func (s sink) Error(err error, message string, keysAndValues ...any) {
	s.LogSink.Error(s.redactor.Error(err), s.redactor.Text(message), s.all(keysAndValues)...)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.LogSink.WithValues(s.all(keysAndValues)...), s.redactor}
}

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink {
	return sink{s.LogSink.WithName(name), s.redactor}
}

// all returns values without what the Secrets hold. What is neither a text nor a number
// is said as a text if it holds any.
func (s sink) all(keysAndValues []any) []any {
	out := make([]any, len(keysAndValues))
	for i, v := range keysAndValues {
		out[i] = s.value(v)
	}
	return out
}

func (s sink) value(v any) any {
	switch v := v.(type) {
	case nil, bool, int, int32, int64, uint64, float64:
		return v
	case string:
		return s.redactor.Text(v)
	case error:
		return s.redactor.Error(v)
	}
	said := fmt.Sprintf("%+v", v)
	if text := s.redactor.Text(said); text != said {
		return text
	}
	return v
}
