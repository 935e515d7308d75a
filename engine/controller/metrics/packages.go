package metrics

import "github.com/prometheus/client_golang/prometheus"

// newPackages returns what counts Packages. Only administrators name them.
func newPackages() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "operetta_packages", Help: "Packages by the status and the reason of their condition Ready.",
	}, []string{"package", "ready", "reason"})
}

// Package notes how the condition Ready of a Package is.
func (m *Metrics) Package(pkg, ready, reason string) {
	m.NoPackage(pkg)
	m.packages.WithLabelValues(pkg, ready, reason).Set(1)
}

// NoPackage forgets a Package.
func (m *Metrics) NoPackage(pkg string) {
	m.packages.DeletePartialMatch(prometheus.Labels{"package": pkg})
}
