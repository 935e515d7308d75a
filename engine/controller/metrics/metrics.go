package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"operetta.dev/engine/history"
)

// results are the values of the label result, as in the metrics of controller-runtime.
var results = map[history.Result]string{history.Success: "success", history.RequeueAfter: "requeue_after", history.Error: "error"}

// labelController is the label with the name of a controller, as in the metrics of controller-runtime.
const labelController = "controller"

// Metrics count what the controllers of a process do. It is a prometheus.Collector, and safe for concurrent use.
type Metrics struct {
	// Collector collects all of them.
	prometheus.Collector

	reconciles, errors *prometheus.CounterVec
	duration           *prometheus.HistogramVec
	requests           *prometheus.CounterVec
	resources          resources
	canaries           canaries
	packages           *prometheus.GaugeVec
}

// durationBuckets go from a resource at rest to one with hundreds of objects.
var durationBuckets = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}

// New returns metrics that count nothing yet.
func New() *Metrics {
	m := &Metrics{
		reconciles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reconcile_total", Help: "Reconciles of custom resources, by result: success, requeue_after or error.",
		}, []string{labelController, "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reconcile_errors_total", Help: "Reconciles of custom resources that ended with an error, and are tried again with backoff.",
		}, []string{labelController}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reconcile_duration_seconds", Help: "How long reconciles of custom resources took, by result.", Buckets: durationBuckets,
		}, []string{labelController, "result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operetta_api_requests_total", Help: "Requests to the API server, by verb, resource and status code; the code is error if there was no response.",
		}, []string{"verb", "resource", "code"}),
		resources: resources{of: map[string]*controllerResources{}},
		canaries:  newCanaries(),
		packages:  newPackages(),
	}
	all := prometheus.NewRegistry()
	all.MustRegister(m.reconciles, m.errors, m.duration, m.requests, &m.resources, m.canaries.resources, m.canaries.ended, m.packages)
	m.Collector = all
	return m
}

// Controller returns the metrics of one controller.
func (m *Metrics) Controller(name string) *Controller {
	return &Controller{metrics: m, name: name}
}

// A Controller counts for one controller. Several of one name count together.
type Controller struct {
	metrics *Metrics
	name    string
}

// Reconciled counts a reconcile.
func (c *Controller) Reconciled(r history.Result, took time.Duration) {
	c.metrics.reconciles.WithLabelValues(c.name, results[r]).Inc()
	c.metrics.duration.WithLabelValues(c.name, results[r]).Observe(took.Seconds())
	errors := c.metrics.errors.WithLabelValues(c.name) // it is 0 before the first, so that a rate is right
	if r == history.Error {
		errors.Inc()
	}
}

// Remove ends all series of the controller.
func (c *Controller) Remove() {
	of := prometheus.Labels{labelController: c.name}
	c.metrics.reconciles.DeletePartialMatch(of)
	c.metrics.errors.DeletePartialMatch(of)
	c.metrics.duration.DeletePartialMatch(of)
	c.metrics.resources.remove(c.name)
}
