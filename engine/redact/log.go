package redact

import (
	"fmt"

	"github.com/go-logr/logr"
)

// Log returns a logger that redacts messages and values like Text.
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

// sink is a log sink that redacts what it passes on.
type sink struct {
	logr.LogSink
	redactor *Redactor
}

// Info implements logr.LogSink.
func (s sink) Info(level int, message string, keysAndValues ...any) {
	s.LogSink.Info(level, s.redactor.Text(message), s.redactValues(keysAndValues)...)
}

// Error implements logr.LogSink.
func (s sink) Error(err error, message string, keysAndValues ...any) {
	s.LogSink.Error(s.redactor.Error(err), s.redactor.Text(message), s.redactValues(keysAndValues)...)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.LogSink.WithValues(s.redactValues(keysAndValues)...), s.redactor}
}

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink {
	return sink{s.LogSink.WithName(name), s.redactor}
}

// redactValues returns values without the values of the Secrets. A value that is neither a string
// nor a number becomes a string if it has to be redacted.
func (s sink) redactValues(keysAndValues []any) []any {
	out := make([]any, len(keysAndValues))
	for i, v := range keysAndValues {
		out[i] = s.redactValue(v)
	}
	return out
}

func (s sink) redactValue(v any) any {
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
