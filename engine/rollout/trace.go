package rollout

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// tracerName is the name of what makes the spans of a rollout.
const tracerName = "operetta.dev/engine/rollout"

// startSpan begins a span below that of a context. If that has none, because tracing is off, nothing is recorded.
func startSpan(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, name, trace.WithAttributes(about...)) //nolint:spancheck // endSpan ends it
}

// endSpan ends a span. The text of an error is not a part of it: it may have the content of a Secret, and the status says it.
func endSpan(span trace.Span, failed bool) {
	if failed {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
