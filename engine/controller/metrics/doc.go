// Package metrics counts what the controllers of a process do and how far their resources are, for Prometheus.
// It decides nothing, and knows no queue and no cluster.
//
//	m := metrics.New()           // a prometheus.Collector
//	c := m.Controller("shops.example.com")
//	c.Reconciled(history.Success, took)
//	c.Observe(key, summary)      // implements reconcile.Observer
//	c.Remove()                   // with the controller, its series end
//
// Users make resources and name them, so no series has a name that a user gives but for those of the
// resources that have waited longest, of which each controller has a few. A resource that is gone has none.
package metrics
