package worker

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what the workers of a Pool do. It is a prometheus.Collector.
type Metrics struct {
	// Collector collects all of them.
	prometheus.Collector

	started           prometheus.Counter
	ended             *prometheus.CounterVec
	evaluations, wait prometheus.Histogram
}

// Why a worker has ended. They are labels of a metric.
const (
	endedByTime     = "time"     // an evaluation took too much processor time
	endedByMemory   = "memory"   // it took too much memory
	endedByStack    = "stack"    // it took too much stack
	endedByKill     = "killed"   // it did not answer in time by the clock, or nobody waited for the answer any more
	endedByCrash    = "crash"    // for another reason, such as a machine without memory
	endedByDecision = "released" // nobody needed it, or it was replaced
)

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		started: prometheus.NewCounter(prometheus.CounterOpts{Name: "operetta_workers_started_total", Help: "Processes that were started to evaluate packages."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operetta_workers_ended_total", Help: "Processes that evaluated packages and have ended, by the cause: time, memory, stack, killed, crash or released.",
		}, []string{"cause"}),
		evaluations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "operetta_worker_evaluations", Help: "Requests that a worker was sent until it has ended.", Buckets: []float64{0, 1, 10, 100, 1000, 10_000},
		}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "operetta_worker_wait_seconds", Help: "How long an evaluation has waited for a worker, its start included.", Buckets: []float64{0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30},
		}),
	}
	for _, cause := range []string{endedByTime, endedByMemory, endedByStack, endedByKill, endedByCrash, endedByDecision} {
		m.ended.WithLabelValues(cause) // it is 0 before the first, so that an increase is seen
	}
	all := prometheus.NewRegistry()
	all.MustRegister(m.started, m.ended, m.evaluations, m.wait)
	m.Collector = all
	return m
}

// causeOf returns why a worker has ended, by its exit code; killed says that this process has killed it.
func causeOf(state *os.ProcessState, killed bool) string {
	switch state.ExitCode() {
	case ExitTime:
		return endedByTime
	case ExitMemory:
		return endedByMemory
	case ExitStack:
		return endedByStack
	case ExitOrphaned:
		return endedByDecision
	}
	if killed {
		return endedByKill
	}
	return endedByCrash
}
