package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	apitrace "go.opentelemetry.io/otel/trace"
)

// startTracing returns a tracer whose traces go to a collector of OpenTelemetry, and a function that sends the rest and ends it. For
// the address "" there is no tracer. A collector that does not answer delays nothing: traces are dropped.
func startTracing(ctx context.Context, address string, log logr.Logger) (apitrace.Tracer, func(), error) {
	if address == "" {
		return nil, func() {}, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(address))
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--otlp-endpoint: %w", err)}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.V(1).Info("traces were not sent", "error", err.Error()) }))
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "operetta"))))
	stop := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer cancel()
		_ = provider.Shutdown(ctx) // nobody waits for traces any more
	}
	return provider.Tracer("operetta.dev"), stop, nil
}
