package controller

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// serveMetrics makes a manager serve metrics at an address; "" serves none.
//
// The server of controller-runtime listens when the manager starts, and logs port 0 as it was given. This
// one listens at once: an address that is taken is an error of New, and the log has the port that the
// system chose for port 0. See record 54.
func serveMetrics(mgr manager.Manager, address string) error {
	if address == "" {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	return mgr.Add(&manager.Server{
		Name:            "metrics",
		Server:          &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout},
		Listener:        listener,
		ShutdownTimeout: new(lastScrape),
	})
}
