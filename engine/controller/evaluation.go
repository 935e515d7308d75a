package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/controller/metrics"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/worker"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// evaluations counts the evaluations of all packages of the process.
var evaluations = func() *evaluate.Metrics {
	out := evaluate.NewMetrics()
	ctrlmetrics.Registry.MustRegister(out)
	return out
}()

// measured are the metrics of the controllers of the process.
var measured = func() *metrics.Metrics {
	out := metrics.New()
	ctrlmetrics.Registry.MustRegister(out)
	return out
}()

// WorkerMetrics count what the worker processes of this process do.
var WorkerMetrics = func() *worker.Metrics {
	out := worker.NewMetrics()
	ctrlmetrics.Registry.MustRegister(out)
	return out
}()

// evaluateOptions returns how a package is evaluated.
func (m *Manager) evaluateOptions(p *program.Program) evaluate.Options {
	var backend evaluate.Backend // nil is this process, which New has only with InProcess
	if m.options.Workers != nil {
		backend = m.options.Workers.Package(p)
	}
	return evaluate.Options{
		Backend: backend, Templates: m.options.Templates, Suspect: m.suspect, Metrics: evaluations,
		Differs: func(ctx context.Context, s program.Session) { m.reportTemplateDiffers(ctx, p, s) },
	}
}

// reportTemplateDiffers reports that a template gave another result than CUE, and reconciles every resource of the kind: some of
// them may rest with what it said.
func (m *Manager) reportTemplateDiffers(ctx context.Context, p *program.Program, s program.Session) {
	u := &unstructured.Unstructured{Object: s.CR}
	e := reconcile.TemplateDiffers()
	m.options.Log.Info(e.Message, "kind", u.GroupVersionKind().GroupKind().String(), "resource", u.GetNamespace()+"/"+u.GetName())
	c, err := m.controllerOf(p)
	if err == nil {
		c.as.recorder.Record(u, e)
		err = m.enqueueAll(ctx, c)
	}
	if err != nil {
		m.options.Log.Error(err, "resources that a wrong template may have decided about could not be reconciled again")
	}
}

// suspect reports whether a resource of a namespace was lately too much to evaluate.
func (m *Manager) suspect(namespace string) bool {
	return m.options.Workers != nil && m.options.Workers.Suspects(namespace)
}
