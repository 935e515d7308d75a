package reconcile_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const tracedBody = `
components: {
	first: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "first"}
	second: {
		dependsOn: first: {}
		objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "second"}
	}
}
`

// traced returns a bench that records spans.
func traced(t *testing.T, body string) (*bench, *tracetest.InMemoryExporter) {
	t.Helper()
	b := newBench(t, body)
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	b.reconciler.Tracer = provider.Tracer("test")
	return b, spans
}

// tree returns the spans as lines, those below another one behind it, each with its component.
func tree(all tracetest.SpanStubs) []string {
	var out []string
	byID := map[string]tracetest.SpanStub{}
	for _, s := range all {
		byID[s.SpanContext.SpanID().String()] = s
	}
	for _, s := range all {
		line := s.Name
		for _, a := range s.Attributes {
			if a.Key == "operetta.component" {
				line += " " + a.Value.AsString()
			}
		}
		if above, ok := byID[s.Parent.SpanID().String()]; ok {
			line = above.Name + " > " + line
		}
		out = append(out, line)
	}
	return out
}

func TestARolloutIsATraceWithItsEvaluationsAndComponents(t *testing.T) {
	t.Parallel()
	b, spans := traced(t, tracedBody)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	b.now = b.now.Add(1)
	if _, err := b.reconciler.Reconcile(logr.NewContext(t.Context(), log), shopKey, b.program); err != nil {
		t.Fatal(err)
	}
	got := spans.GetSpans()
	components := []string{}
	for _, line := range tree(got) {
		if strings.Contains(line, "component") {
			components = append(components, line)
		}
	}
	if diff := cmp.Diff([]string{"rollout > component first", "rollout > component second"}, components); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strings.Count(strings.Join(tree(got), "\n"), "rollout > evaluate"); n < 2 {
		t.Errorf("%d evaluations, want one before the first write and one after it", n)
	}
	root := got[len(got)-1]
	if root.Name != "rollout" || root.Parent.IsValid() {
		t.Fatalf("the last span to end is %s", root.Name)
	}
	for _, s := range got {
		if s.SpanContext.TraceID() != root.SpanContext.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
	}
	want := attribute.String("k8s.resource.name", shopKey.Name)
	if !strings.Contains(cmp.Diff(nil, root.Attributes, cmp.Comparer(func(a, b attribute.Value) bool { return a == b })), want.Value.AsString()) {
		t.Errorf("the attributes are %v", root.Attributes)
	}
	for _, line := range lines {
		if !strings.Contains(line, root.SpanContext.TraceID().String()) {
			t.Errorf("the line has no trace: %s", line)
		}
	}
	if len(lines) == 0 {
		t.Error("nothing was logged")
	}
}

func TestAResourceAtRestMakesNoTrace(t *testing.T) {
	t.Parallel()
	b, spans := traced(t, tracedBody)
	b.settle()
	spans.Reset()
	for range 5 {
		if _, err := b.step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := spans.GetSpans(); len(got) > 0 {
		t.Errorf("%d spans: %v", len(got), tree(got))
	}
}

func TestATraceLinksToWhoeverHasAppliedTheResource(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	rows := map[string]struct {
		reason, annotation string
		linked             bool
	}{
		"a trace":         {"it is linked to", "00-" + trace + "-b7ad6b7169203331-01", true},
		"not sampled":     {"that does not decide whether this one is", "00-" + trace + "-b7ad6b7169203331-00", true},
		"none":            {"most resources have none", "", false},
		"no such format":  {"users write it", "00-" + trace, false},
		"a mebibyte":      {"users write it", strings.Repeat("0", 1<<20), false},
		"an all zero one": {"the format forbids it", "00-00000000000000000000000000000000-0000000000000000-01", false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, spans := traced(t, tracedBody)
			if row.annotation != "" {
				b.annotate("traceparent", row.annotation)
			}
			b.settle()
			all := spans.GetSpans()
			if len(all) == 0 {
				t.Fatal("there are no spans")
			}
			for _, s := range all {
				if s.Name != "rollout" {
					continue
				}
				linked := len(s.Links) == 1 && s.Links[0].SpanContext.TraceID().String() == trace
				if linked != row.linked || s.SpanContext.TraceID().String() == trace {
					t.Errorf("%s: the links are %v", row.reason, s.Links)
				}
			}
		})
	}
}
