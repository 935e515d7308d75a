package controller

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/time/rate"
	certutil "k8s.io/client-go/util/cert"
	"operetta.dev/engine/history"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)

// serveMetrics makes a manager serve metrics at an address, and if that is secure, what is known of the last reconciles of
// its resources; "" and off serve none.
//
// The server of controller-runtime listens when the manager starts, and logs port 0 as it was given. This
// one listens at once: an address that is taken is an error of New, and the log has the port that the
// system chose for port 0. See record 54.
func (m *Manager) serveMetrics() error {
	mgr, o := m.manager, m.options
	if o.MetricsAddress == "" || o.MetricsAddress == off {
		return nil
	}
	handler, err := metricsHandler(mgr, o)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", o.MetricsAddress)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	if o.MetricsSecure {
		plain := listener
		if listener, err = encrypted(mgr, plain, o); err != nil {
			_ = plain.Close()
			return fmt.Errorf("serving metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	if o.MetricsSecure {
		reconciles, err := newReconcilesHandler(m)
		if err != nil {
			return fmt.Errorf("serving metrics: %w", err)
		}
		mux.Handle(history.Path, reconciles)
	}
	return mgr.Add(&manager.Server{
		Name: "metrics",
		Server: &http.Server{
			Handler: mux, ReadHeaderTimeout: headerTimeout,
			// Each connection that is no TLS would be a line, so anyone could fill the log.
			ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(o.Log), slog.LevelDebug),
		},
		Listener:        listener,
		ShutdownTimeout: new(lastScrape),
	})
}

// metricsHandler returns the handler of metrics. If they are secure, a token in a file or else the API server says who may read them: its
// TokenReview says whose token a scraper has, and its SubjectAccessReview whether that user may get /metrics.
func metricsHandler(mgr manager.Manager, o Options) (http.Handler, error) {
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	if !o.MetricsSecure {
		return handler, nil
	}
	if o.MetricsTokenFile != "" {
		_, err := readMetricsToken(o.MetricsTokenFile)
		return withToken(o.MetricsTokenFile, o.Log.WithName("metrics"), handler), err
	}
	filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	log := o.Log.WithName("metrics")
	if sink := log.GetSink(); sink != nil {
		log = log.WithSink(rateLimitedSink{sink, &rate.Sometimes{Interval: refusalInterval}})
	}
	return filter(log, handler)
}

// A rateLimitedSink logs errors at a limited rate. The filter logs each request with a token that no issuer knows, so anyone
// could fill the log; but it also logs that the operator may not ask whose a token is.
type rateLimitedSink struct {
	logr.LogSink

	sometimes *rate.Sometimes
}

// Error implements logr.LogSink.
func (r rateLimitedSink) Error(err error, msg string, keysAndValues ...any) {
	r.sometimes.Do(func() { r.LogSink.Error(err, msg, keysAndValues...) })
}

// WithValues implements logr.LogSink.
func (r rateLimitedSink) WithValues(keysAndValues ...any) logr.LogSink {
	return rateLimitedSink{r.LogSink.WithValues(keysAndValues...), r.sometimes}
}

// WithName implements logr.LogSink.
func (r rateLimitedSink) WithName(name string) logr.LogSink {
	return rateLimitedSink{r.LogSink.WithName(name), r.sometimes}
}

// encrypted returns a listener by TLS. Its certificate is that of a folder, which may change, or else one that is made
// now and that is self-signed.
func encrypted(mgr manager.Manager, plain net.Listener, o Options) (net.Listener, error) {
	// A certificate of a client is not required, and the code that relies on one verifies it: see access.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ClientAuth: tls.RequestClientCert}
	logExpired(config, o.Log.WithValues("server", "metrics", "folder", o.MetricsCertDir), time.Now)
	if dir := o.MetricsCertDir; dir != "" {
		watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			return nil, err
		}
		config.GetCertificate = watcher.GetCertificate
		return tls.NewListener(plain, config), mgr.Add(watcher)
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{{127, 0, 0, 1}}, nil, "")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return tls.NewListener(plain, config), nil
}
