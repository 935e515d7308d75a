// Package registered lists the metrics that an operator serves.
package registered

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	_ "operetta.dev/engine/controller" // it registers the metrics
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Descriptions returns the descriptions of all registered metrics.
func Descriptions() ([]*prometheus.Desc, error) {
	collector, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		return nil, errors.New("the registry describes nothing")
	}
	descs := make(chan *prometheus.Desc, 10_000) // more than there are, so that nobody has to wait
	collector.Describe(descs)
	close(descs)
	var out []*prometheus.Desc
	for d := range descs {
		out = append(out, d)
	}
	return out, nil
}
