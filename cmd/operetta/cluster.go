package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"sigs.k8s.io/yaml"
)

// installCRD applies a CustomResourceDefinition and waits until the API server
// serves it. While the API server is away it keeps trying.
func installCRD(ctx context.Context, config *rest.Config, log logr.Logger, want *apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	text, err := crd.YAML(want)
	if err != nil {
		return err
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("%s: %w", want.Name, err)
	}
	crds := client.CustomResourceDefinitions()
	force := true
	for {
		// By server-side apply: the annotation of a client-side one is limited to 256 KiB.
		_, err := crds.Patch(ctx, want.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: cluster.FieldManager, Force: &force})
		if err == nil {
			return awaitEstablished(ctx, crds, want.Name)
		}
		if !unreachable(err) {
			return fmt.Errorf("installing %s: %w", want.Name, err)
		}
		log.Info("the API server cannot be reached, trying again", "host", config.Host, "every", outageRetry.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(outageRetry):
		}
	}
}

// awaitEstablished waits until the API server serves a definition.
func awaitEstablished(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		got, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !unreachable(err) {
			return fmt.Errorf("waiting for %s: %w", name, err)
		}
		for _, c := range got.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return fmt.Errorf("%s: %s", name, c.Message)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be established: %w", name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// unreachable reports whether an error means that the API server is away, and not
// that it refused something.
func unreachable(err error) bool {
	var network net.Error
	var op *net.OpError
	return errors.As(err, &op) || (errors.As(err, &network) && network.Timeout()) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// noticeOutages logs once when the API server goes away, and once when it is back.
// The clients and watches retry by themselves.
func noticeOutages(config *rest.Config, log logr.Logger) {
	var away atomic.Bool
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			switch {
			case err == nil && away.CompareAndSwap(true, false):
				log.Info("the API server is back", "host", config.Host)
			case err != nil && req.Context().Err() == nil && away.CompareAndSwap(false, true):
				log.Info("the API server cannot be reached, trying again", "host", config.Host, "error", err.Error())
			}
			return resp, err
		})
	})
}

// roundTripper is an http.RoundTripper made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
