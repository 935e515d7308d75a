package reconcile

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// annotationTraceParent names the trace of the client that has applied a resource, in the format of W3C Trace Context. The trace of
// each rollout links to it.
const annotationTraceParent = "traceparent"

// startTrace begins the trace of a rollout, if there is a tracer, and adds its identifier to the log.
func (s *state) startTrace(ctx context.Context) (context.Context, trace.Span) {
	if s.Tracer == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("k8s.namespace.name", s.owner.Namespace),
		attribute.String("k8s.resource.kind", s.Kind.GroupKind().String()),
		attribute.String("k8s.resource.name", s.owner.Name),
		attribute.Int64("k8s.resource.generation", s.cr.GetGeneration()),
	)}
	if from := parentOf(s.cr.GetAnnotations()[annotationTraceParent]); from.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	ctx, span := s.Tracer.Start(ctx, "rollout", options...)
	if span.SpanContext().IsSampled() {
		s.log = s.log.WithValues("trace", span.SpanContext().TraceID().String())
	}
	return ctx, span
}

// parentOf returns the span that a text in the format of W3C Trace Context names. It is invalid if the text is. Users
// write the text, so the trace only links to the span: as a parent, it would decide whether the trace is sampled.
func parentOf(text string) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
