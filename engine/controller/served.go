package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/lifecycle"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// served is one package's controller.
type served struct {
	reconciler *reconciler
	wake       chan event.TypedGenericEvent[client.Object]
}

// serve adds the controller of one package.
func (m *Manager) serve(p *program.Program, kids children, o Options) error {
	gvk := p.GroupVersionKind()
	l := &lifecycle.Lifecycle{
		Kind:      gvk,
		Store:     &store{kind: gvk, client: m.manager.GetClient()},
		Recorder:  recorder{m.manager.GetEventRecorder("operetta")},
		Now:       time.Now,
		Subsystem: m.subsystems.has,
	}
	r := &reconciler{lifecycle: l}
	r.use(p)
	// With the group: another package may serve a kind of the same name.
	name := strings.ToLower(gvk.GroupKind().String())
	c, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[reconcile.Request]{
		Reconciler:              r,
		MaxConcurrentReconciles: max(1, o.Concurrency),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			l := o.Log.WithValues("package", p.Name())
			if req == nil {
				return l.V(1) // what the library says of its watches interests few
			}
			return l.WithValues(gvk.Kind, req.NamespacedName)
		},
	})
	if err != nil {
		return err
	}
	w := &watches{owner: gvk.GroupKind(), cache: kids.cache, controller: c, started: map[schema.GroupVersionKind]bool{}}
	l.Cluster = &cluster.Live{Client: kids.client, Direct: kids.direct, Kinds: kids.kinds, Watch: w.ensure}
	s := &served{reconciler: r, wake: make(chan event.TypedGenericEvent[client.Object])}
	read := m.newInputs(s)
	l.Inputs, l.ConfigMap = read, o.ConfigMap
	if err := m.manager.Add(read); err != nil {
		return err
	}
	l.Patches = m.patches
	m.patches.readers = append(m.patches.readers, reader{kind: gvk.GroupKind(), controller: c})
	m.controllers[gvk.GroupKind()] = s
	if err := s.watch(c, m.manager.GetCache(), gvk); err != nil {
		return err
	}
	return m.manager.Add(c)
}

// watch makes the controller reconcile changed resources, and those that a new
// version of the package wakes.
func (s *served) watch(c controller.Controller, crs cache.Cache, gvk schema.GroupVersionKind) error {
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	if err := c.Watch(source.Kind[client.Object](crs, object(gvk), enqueue, meaningful)); err != nil {
		return err
	}
	return c.Watch(source.Channel(s.wake, enqueue))
}

// Swap makes the controller of a package use another version of it, and reconciles
// every custom resource with that. It errors, and changes nothing, when no
// controller serves the package or the new version serves another kind.
func (m *Manager) Swap(ctx context.Context, p *program.Program) error {
	s, ok := m.controllers[p.GroupVersionKind().GroupKind()]
	if !ok {
		return errNotServed(p)
	}
	if got, want := p.GroupVersionKind(), s.reconciler.lifecycle.Kind; got != want {
		return fmt.Errorf("package %s serves %s now, and %s before; start the operator anew", p.Name(), got, want)
	}
	s.reconciler.use(p)
	return s.wakeAll(ctx, m.manager.GetClient())
}

// wakeAll reconciles every resource of the package.
func (s *served) wakeAll(ctx context.Context, c client.Client) error {
	list := newList(s.reconciler.lifecycle.Kind)
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", s.reconciler.lifecycle.Kind.Kind, err)
	}
	for i := range list.Items {
		select {
		case s.wake <- event.TypedGenericEvent[client.Object]{Object: &list.Items[i]}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// newInputs returns the watches of what the package reads.
func (m *Manager) newInputs(s *served) *inputs {
	return &inputs{
		watched: map[inputKey]*inputWatch{},
		refers:  map[types.NamespacedName]map[inputKey]bool{},
		open: func(key inputKey) (cache.Cache, error) {
			options, err := inputOptions(key)
			if err != nil {
				return nil, err
			}
			options.HTTPClient, options.Scheme, options.Mapper = m.manager.GetHTTPClient(), m.manager.GetScheme(), m.manager.GetRESTMapper()
			return cache.New(m.manager.GetConfig(), options)
		},
		wake: s.wakeOne,
	}
}

// wakeOne reconciles one resource.
func (s *served) wakeOne(ctx context.Context, key types.NamespacedName) {
	u := object(s.reconciler.lifecycle.Kind)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	select {
	case s.wake <- event.TypedGenericEvent[client.Object]{Object: u}:
	case <-ctx.Done():
	}
}
