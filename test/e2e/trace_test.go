package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"operetta.dev/test/harness"
)

// A traceCollector is a collector of OpenTelemetry that keeps what it gets.
type traceCollector struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []*tracev1.Span
}

// Export implements collector.TraceServiceServer.
func (c *traceCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// named returns the spans whose name begins with a text.
func (c *traceCollector) named(prefix string) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*tracev1.Span
	for _, s := range c.spans {
		if strings.HasPrefix(s.GetName(), prefix) {
			out = append(out, s)
		}
	}
	return out
}

// startCollector starts a collector, and returns its URL.
func startCollector(t *testing.T) (*traceCollector, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &traceCollector{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c, "http://" + listener.Addr().String()
}

func TestARolloutIsATraceUpToEachWrite(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	c, url := startCollector(t)
	p := newTestPackage(t, "spanned", `
#Spec: {}
components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "spanned"}
`)
	o := s.StartOperator(p.Dir, "--otlp-endpoint", url, "--log=json")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	harness.Eventually(t, "a trace with a write", func() error {
		writes := c.named("apply configmaps")
		if len(writes) == 0 {
			return errors.New("no write was traced")
		}
		for _, component := range c.named("component") {
			if string(component.GetSpanId()) != string(writes[0].GetParentSpanId()) {
				continue
			}
			for _, rollout := range c.named("rollout") {
				if string(rollout.GetSpanId()) == string(component.GetParentSpanId()) {
					return nil
				}
			}
			return errors.New("the rollout has not ended")
		}
		return fmt.Errorf("the write is below none of %d components", len(c.named("component")))
	})
	trace := hex.EncodeToString(c.named("apply configmaps")[0].GetTraceId())
	o.ExpectLog(`"trace":"`+trace, "Created", s.Namespace)
	if len(c.named("evaluate")) == 0 {
		t.Error("no evaluation was traced")
	}
}

func TestACollectorThatIsNotThereDelaysNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "unspanned", `
#Spec: {}
components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "unspanned"}
`)
	o := s.StartOperator(p.Dir, "--otlp-endpoint", "http://127.0.0.1:1")
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", map[string]any{})))
	o.Stop()
}
