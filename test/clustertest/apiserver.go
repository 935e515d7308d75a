package clustertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// liveServer is the API server of all sites; nil if they are in memory.
var liveServer *apiServer

// parallel is how many tests run in parallel on an API server: more than there are processors, because
// they wait most of the time.
const parallel = "8"

// apiServer is a control plane with its clients.
type apiServer struct {
	admin   client.WithWatch
	cache   cache.Cache
	cached  client.Client
	kinds   func() ([]schema.GroupVersionKind, error)
	schemas cluster.Schemas
	webhook *webhook
}

// startLiveServer starts the API server. It returns a function that stops it, also with an error.
func startLiveServer() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	stop = cancel
	if !isSet("test.parallel") {
		_ = flag.Set("test.parallel", parallel)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Without: []controlplane.Part{controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok},
		ExtraArgs: map[controlplane.Part][]string{
			controlplane.ControllerManager: {"--controllers=garbage-collector-controller"},
		},
	})
	if err != nil {
		return stop, err
	}
	stop = func() {
		cancel()
		_ = cp.Stop()
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		return stop, err
	}
	config.QPS = -1
	ctrllog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	p := &apiServer{}
	if err := p.connect(ctx, config); err != nil {
		return stop, err
	}
	if p.webhook, err = newWebhook(ctx, p.admin); err != nil {
		return stop, err
	}
	for _, kind := range alwaysServed {
		if err := p.serve(ctx, kind); err != nil {
			return stop, err
		}
	}
	// The garbage collector starts last, because it discovers new kinds only every half minute.
	if err := cp.StartPart(ctx, controlplane.ControllerManager); err != nil {
		return stop, err
	}
	liveServer = p
	return stop, nil
}

func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// connect creates the clients and the cache with the operator's settings.
func (p *apiServer) connect(ctx context.Context, config *rest.Config) error {
	ours, err := labels.Parse(ownership.OwnerLabel)
	if err != nil {
		return err
	}
	config = cluster.AcceptCBOR(cluster.WithStatusCodes(config))
	scheme := runtime.NewScheme()
	if p.cache, err = cache.New(config, cache.Options{Scheme: scheme, DefaultLabelSelector: ours}); err != nil {
		return err
	}
	go func() { _ = p.cache.Start(ctx) }() // it ends with the context
	if p.admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	mapper, err := cluster.NewRESTMapper(config, httpClient)
	if err != nil {
		return err
	}
	p.cached, err = cluster.ConsistentClient(config, client.Options{Scheme: scheme, HTTPClient: httpClient, Mapper: mapper, Cache: &client.CacheOptions{Reader: p.cache}})
	p.kinds, p.schemas = cluster.Kinds(config), cluster.PublishedSchemas(config)
	return err
}

// newSite creates a Site with a new namespace.
func (p *apiServer) newSite(t *testing.T) *Site {
	t.Helper()
	l := &live{server: p, namespace: namespaceOf(t), ctx: t.Context(), recordings: map[schema.GroupVersionKind]*recording{}}
	ns := object(namespaceKind, "", l.namespace)
	ns.SetLabels(map[string]string{siteLabel: "yes"})
	if err := p.admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.refuse(nil) })
	l.Live = &cluster.Live{Client: p.cached, Direct: p.admin, Kinds: p.kinds, Watch: l.watch, Schemas: p.schemas}
	return &Site{Cluster: l, Namespace: l.namespace, t: t, backend: l}
}

// object returns an object with only its identity.
func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

var (
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	crdKind       = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// permissiveCRD is the CustomResourceDefinition of a kind whose objects may hold anything.
func permissiveCRD(kind schema.GroupVersionKind) *unstructured.Unstructured {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	u := object(crdKind, "", plural.Resource+"."+kind.Group)
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	u.Object["spec"] = map[string]any{
		"group": kind.Group, "scope": string(cluster.Namespaced),
		"names": map[string]any{"kind": kind.Kind, "plural": plural.Resource},
		"versions": []any{map[string]any{
			"name": kind.Version, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
			}},
			"subresources": map[string]any{"status": map[string]any{}},
		}},
	}
	return u
}

// serve creates the CustomResourceDefinition of a kind, and waits until its objects can be listed.
func (p *apiServer) serve(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := p.admin.Create(ctx, permissiveCRD(kind)); err != nil {
		return fmt.Errorf("defining %s: %w", kind.Kind, err)
	}
	return eventually(ctx, kind.Kind+" to be served", func() error {
		_, err := p.list(ctx, kind, "")
		return err
	})
}

// withdraw deletes the CustomResourceDefinition of a kind, and waits until the kind is not served.
func (p *apiServer) withdraw(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := p.admin.Delete(ctx, permissiveCRD(kind)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the definition of %s: %w", kind.Kind, err)
	}
	return eventually(ctx, "the end of "+kind.Kind, func() error {
		switch _, err := p.list(ctx, kind, ""); {
		case err == nil:
			return errors.New("it is served")
		case !apierrors.IsNotFound(err):
			return err
		}
		return nil
	})
}

// list returns the objects of a kind and the version of the list.
func (p *apiServer) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) (*unstructured.UnstructuredList, error) {
	out := &unstructured.UnstructuredList{}
	out.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := p.admin.List(ctx, out, client.InNamespace(namespace))
	return out, err
}

// eventually polls until check returns nil.
func eventually(ctx context.Context, what string, check func() error) error {
	const interval = 5 * time.Millisecond
	limit := time.After(machine.Patience)
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-limit:
			return fmt.Errorf("waited %s for %s: %w", machine.Patience, what, err)
		case <-time.After(interval):
		}
	}
}
