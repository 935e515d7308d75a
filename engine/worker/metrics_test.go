package worker_test

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"operetta.dev/engine/template"
	"operetta.dev/engine/worker"
	"operetta.dev/test/machine"
)

func TestMetricsSayWhyWorkersHaveEnded(t *testing.T) {
	t.Parallel()
	m := worker.NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	pool := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], workerArgument}, Size: 1, Limits: worker.Limits{Memory: 256 << 20, Time: testTime}, Patience: testPatience, Metrics: m,
	})
	in := pool.Package(compile(t, ""))
	_, _ = in.Evaluate(t.Context(), session("town", nil))
	_, _ = in.Evaluate(t.Context(), session("mallory", map[string]any{"text": endless}))
	_, _ = in.Evaluate(t.Context(), session("mallory", map[string]any{"shift": int64(100_000_000_000)}))
	_, _ = in.Evaluate(t.Context(), session("town", nil))
	pool.Close()
	value := func(name string) float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, f := range families {
			for _, of := range f.GetMetric() {
				id := f.GetName()
				for _, l := range of.GetLabel() {
					id += " " + l.GetValue()
				}
				if strings.HasPrefix(id, name) {
					total += of.GetCounter().GetValue() + float64(of.GetHistogram().GetSampleCount())
				}
			}
		}
		return total
	}
	machine.Eventually(t, "the end of the last one", func() bool { return value("operetta_workers_ended_total released") >= 1 })
	if n := value("operetta_workers_ended_total time"); n < 1 {
		t.Errorf("%v have ended by time", n)
	}
	if started, ended := value("operetta_workers_started_total"), value("operetta_workers_ended_total"); started != ended || started < 3 {
		t.Errorf("%v were started, and %v have ended", started, ended)
	}
	if n := value("operetta_worker_evaluations"); n != value("operetta_workers_ended_total") {
		t.Errorf("%v workers have evaluated", n)
	}
	if n := value("operetta_worker_wait_seconds"); n < 4 {
		t.Errorf("%v have waited", n)
	}
}

func TestATemplateThatWasMadeCountsAsTime(t *testing.T) {
	t.Parallel()
	in, ctx := newPool(t, 1).Package(compile(t, "")), worker.WithRollout(t.Context())
	if result, err := in.Compile(ctx, session("town", nil), template.Pins{}); err != nil || result.Template == nil {
		t.Fatalf("there is no template: %v, error %v", result.Untranslated, err)
	}
	if got := worker.ProcessorTimeSpent(ctx); got <= 0 {
		t.Errorf("it counts as %s", got)
	}
}
