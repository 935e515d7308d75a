package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
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
			if err := awaitEstablished(ctx, crds, want.Name); err != nil {
				return err
			}
			return awaitServed(ctx, config, want)
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
	ctx, cancel := context.WithTimeout(ctx, establishedLimit)
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
		case <-time.After(establishedPoll):
		}
	}
}

// awaitServed waits until the API server tells of the versions of a definition. That is
// a moment after it is established; whoever asks for the kind before is told that there
// is none, and a watch tries again only after ten seconds.
func awaitServed(ctx context.Context, config *rest.Config, want *apiextensionsv1.CustomResourceDefinition) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	for _, v := range want.Spec.Versions {
		if !v.Served {
			continue
		}
		version := schema.GroupVersion{Group: want.Spec.Group, Version: v.Name}
		err := wait.PollUntilContextTimeout(ctx, establishedPoll, establishedLimit, true, func(context.Context) (bool, error) {
			ok, err := discovered(client, version.WithResource(want.Spec.Names.Plural))
			return ok, ignore(err, apierrors.IsNotFound, unreachable)
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served in version %s: %w", want.Name, v.Name, err)
		}
	}
	return nil
}

// discovered reports whether the API server tells of a resource, in the list of its
// version and in that of everything. Clients begin with the latter, and it comes later.
func discovered(client *discovery.DiscoveryClient, resource schema.GroupVersionResource) (bool, error) {
	list, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return false, err
	}
	_, all, _, err := client.GroupsAndMaybeResources()
	if err != nil {
		return false, err
	}
	if all == nil { // an old API server has no such list
		return lists(list, resource.Resource), nil
	}
	return lists(list, resource.Resource) && lists(all[resource.GroupVersion()], resource.Resource), nil
}

func lists(list *metav1.APIResourceList, plural string) bool {
	return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
}

// ignore returns an error unless it is of some kind.
func ignore(err error, kinds ...func(error) bool) error {
	if slices.ContainsFunc(kinds, func(is func(error) bool) bool { return is(err) }) {
		return nil
	}
	return err
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
