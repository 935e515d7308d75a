package evaluate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"operetta.dev/engine/compile"
)

// Metrics count how packages are evaluated. It is a prometheus.Collector.
type Metrics struct {
	// Collector collects all of them.
	prometheus.Collector

	evaluations, fallbacks, compiles, assemblies, differences *prometheus.CounterVec
	templates, bytes                                          *prometheus.GaugeVec
	duration                                                  *prometheus.HistogramVec
}

// How a session was evaluated.
const (
	byMemo     = "memo"
	byTemplate = "template"
	byCUE      = "cue"
)

// durationBuckets go from answers that are remembered to evaluations that are ended.
var durationBuckets = []float64{0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "operetta_" + name, Help: help}, append([]string{"package"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "operetta_" + name, Help: help}, []string{"package"})
	}
	m := &Metrics{
		evaluations: counter("evaluations_total", "Evaluations of a package, by how: memo, template or cue.", "by"),
		fallbacks:   counter("evaluation_fallbacks_total", "Evaluations that no template had an answer for, by the reason.", "reason"),
		compiles:    counter("template_compiles_total", "Sessions that were compiled, by the result: template, untranslated, faulty or unfinished.", "result"),
		assemblies:  counter("template_assemblies_total", "Templates that were made of parts of others, without CUE."),
		differences: counter("template_differences_total", "Templates that gave another result than CUE, and were dropped."),
		templates:   gauge("templates", "Templates that a package has."),
		bytes:       gauge("template_bytes", "Memory that the templates of a package take, about."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "operetta_evaluation_duration_seconds", Help: "How long evaluations of a package took, by how: memo, template or cue.", Buckets: durationBuckets,
		}, []string{"package", "by"}),
	}
	all := prometheus.NewRegistry()
	all.MustRegister(m.evaluations, m.fallbacks, m.compiles, m.assemblies, m.differences, m.templates, m.bytes, m.duration)
	m.Collector = all
	return m
}

// of returns the metrics of one package.
func (m *Metrics) of(name string) packageMetrics {
	if m == nil {
		m = NewMetrics() // nobody collects them
	}
	m.differences.WithLabelValues(name) // it is 0 before the first, so that an increase is seen
	return packageMetrics{m, name}
}

// packageMetrics are the metrics of one package.
type packageMetrics struct {
	*Metrics
	name string
}

func (m packageMetrics) evaluated(by string, took time.Duration) {
	m.evaluations.WithLabelValues(m.name, by).Inc()
	m.duration.WithLabelValues(m.name, by).Observe(took.Seconds())
}
func (m packageMetrics) fellBack(why fallback) {
	m.fallbacks.WithLabelValues(m.name, string(why)).Inc()
}
func (m packageMetrics) assembled() { m.assemblies.WithLabelValues(m.name).Inc() }
func (m packageMetrics) differed()  { m.differences.WithLabelValues(m.name).Inc() }

// What came of a session that was compiled. They are labels of a metric.
const (
	resultTemplate     = "template"     // there is a template
	resultUntranslated = "untranslated" // the package says something that does not translate
	resultFaulty       = "faulty"       // the session is at fault, which says nothing of others
	resultUnfinished   = "unfinished"   // it took too much, or there was no worker, or its template has no answer for the session itself
)

// compiled counts a compilation, and err is why there is no answer of CUE.
func (m packageMetrics) compiled(r compile.Result, err error) {
	result := resultFaulty
	switch {
	case r.Template != nil:
		result = resultTemplate
	case inconclusive(err) || r.Inconclusive:
		result = resultUnfinished
	case len(r.Untranslated) > 0:
		result = resultUntranslated
	}
	m.compiles.WithLabelValues(m.name, result).Inc()
}

func (m packageMetrics) holds(templates, bytes int) {
	m.templates.WithLabelValues(m.name).Set(float64(templates))
	m.bytes.WithLabelValues(m.name).Set(float64(bytes))
}
