package controller

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/lifecycle"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// control returns what watches a kind and tears its strays down, until its context
// ends. The cache is its own: it goes with it, and one that may not be filled holds
// nobody else up.
func (s *strays) control(k strayKind) (func(context.Context), error) {
	m := s.manager
	options := cacheOptions(m.manager)
	options.DefaultNamespaces = only(m.options.CustomResourceNamespace)
	resources, err := cache.New(m.manager.GetConfig(), options)
	if err != nil {
		return nil, err
	}
	reader, err := cachedClient(m.manager, resources)
	if err != nil {
		return nil, err
	}
	l := &lifecycle.Lifecycle{
		Kind: k.GroupVersionKind, Store: &store{kind: k.GroupVersionKind, client: reader}, Recorder: m.recorder(), Now: time.Now,
	}
	c, err := m.newController("stray."+strings.ToLower(k.GroupKind().String()), k.Kind, k.pkg, strayStep(l))
	if err != nil {
		return nil, err
	}
	l.Cluster = newSpread(m.children, k.GroupKind(), c)
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	stray := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil && waits(o) })
	if err := c.Watch(source.Kind[client.Object](resources, object(k.GroupVersionKind), enqueue, meaningful, stray)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		var reading sync.WaitGroup
		reading.Go(func() { _ = resources.Start(ctx) }) // it ends with its context
		if err := c.Start(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(err, "resources without their package are not watched any more", "package", k.pkg, "kind", k.GroupKind().String())
		}
		reading.Wait()
	}, nil
}

// waits reports whether a resource waits for the engine when it is deleted.
func waits(o metav1.Object) bool { return slices.Contains(o.GetFinalizers(), lifecycle.Finalizer) }

// strayStep returns what tears the strays of one kind down.
func strayStep(l *lifecycle.Lifecycle) step {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		again, err := l.StepStray(ctx, key)
		if apierrors.IsConflict(err) {
			return firstRetry, nil // it was changed since it was read
		}
		return again, err
	}
}
