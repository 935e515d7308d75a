package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// retryOutage calls a function until it succeeds, fails for another reason than that the API server
// cannot be reached, or the context ends, whose error it returns then.
func retryOutage(ctx context.Context, config *rest.Config, log logr.Logger, call func() error) error {
	for {
		err := call()
		if err == nil || !unreachable(err) {
			return err
		}
		log.Info("the API server cannot be reached, trying again", "host", config.Host, "every", outageRetry.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(outageRetry):
		}
	}
}

// unreachable reports whether an error means that the API server cannot be reached or cannot
// answer now, rather than that it rejected the request.
func unreachable(err error) bool {
	var network net.Error
	var op *net.OpError
	return errors.As(err, &op) || (errors.As(err, &network) && network.Timeout()) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// logOutages logs once when the API server can no longer be reached, and once when it can be
// reached again. The clients and watches retry by themselves.
func logOutages(config *rest.Config, log logr.Logger) {
	var down atomic.Bool
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			switch {
			case err == nil && down.CompareAndSwap(true, false):
				log.Info("the API server is back", "host", config.Host)
			case err != nil && req.Context().Err() == nil && down.CompareAndSwap(false, true):
				log.Info("the API server cannot be reached, trying again", "host", config.Host, "error", err.Error())
			}
			return resp, err
		})
	})
}

// roundTripperFunc is a function that implements http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
