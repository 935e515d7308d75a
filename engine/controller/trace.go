package controller

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"operetta.dev/engine/controller/metrics"
)

// A tracingTransport makes a span of each request to the API server that belongs to a trace.
type tracingTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tracingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	parent := trace.SpanFromContext(req.Context())
	if !parent.IsRecording() {
		return t.RoundTripper.RoundTrip(req)
	}
	r := metrics.RequestOf(req)
	_, span := parent.TracerProvider().Tracer("operetta.dev/engine/controller").Start(req.Context(), r.Verb+" "+r.Resource, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("k8s.namespace.name", r.Namespace), attribute.String("k8s.resource.name", r.Name)))
	defer span.End()
	resp, err := t.RoundTripper.RoundTrip(req)
	switch {
	case err != nil:
		span.SetStatus(codes.Error, "")
	case resp.StatusCode >= http.StatusBadRequest:
		span.SetStatus(codes.Error, "")
		fallthrough
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	}
	return resp, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t tracingTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
