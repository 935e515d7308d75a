package metrics

import "github.com/prometheus/client_golang/prometheus"

// canaries has how far the canaries of Packages are. Only administrators name Packages.
type canaries struct {
	resources *prometheus.GaugeVec
	ended     *prometheus.CounterVec
}

func newCanaries() canaries {
	return canaries{
		resources: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "operetta_package_canary_resources", Help: "Custom resources that have the content of a canary, by whether they are ready, while it is in progress.",
		}, []string{"package", "ready"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operetta_package_canaries_total", Help: "Canaries of a Package that have ended, by phase: Promoted or RolledBack.",
		}, []string{"package", "phase"}),
	}
}

// Canary notes how many resources have the content of a canary of a Package, and how many of these are ready.
func (m *Metrics) Canary(pkg string, resources, ready int) {
	m.canaries.resources.WithLabelValues(pkg, "true").Set(float64(ready))
	m.canaries.resources.WithLabelValues(pkg, "false").Set(float64(resources - ready))
}

// NoCanary notes that there is no canary of a Package in progress.
func (m *Metrics) NoCanary(pkg string) {
	m.canaries.resources.DeletePartialMatch(prometheus.Labels{"package": pkg})
}

// CanaryEnded counts a canary.
func (m *Metrics) CanaryEnded(pkg, phase string) {
	m.canaries.ended.WithLabelValues(pkg, phase).Inc()
}
