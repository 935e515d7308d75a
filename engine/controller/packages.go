package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var (
	_ packages.Server   = (*Manager)(nil)
	_ packages.Versions = (*Manager)(nil)
)

// PackageOptions are how Packages are served.
type PackageOptions struct {
	// Selector selects them by labels.
	Selector labels.Selector
	// Registries has the modules of their sources, and those that they depend on.
	Registries packages.Registries
	// PullSecretNamespace is the namespace of the Secrets with credentials for sources, which should be that of
	// the operator; "" has none read.
	PullSecretNamespace string
	// Namespace is that of the operator, the default of the ServiceAccounts that Packages name; "" is unknown.
	Namespace string
}

// ServePackages makes the manager serve the Packages of the cluster. It returns their reconciler.
func (m *Manager) ServePackages(e packages.Examiner, o PackageOptions) (*packages.Reconciler, error) {
	selector := o.Selector
	of, err := watch.NewCache(m.manager, "", cache.Options{
		DefaultLabelSelector: selector, DefaultTransform: watch.TransformResource(m.options.Log), SyncPeriod: new(watch.Resync),
	})
	if err != nil {
		return nil, err
	}
	again := &enqueuer{}
	enqueue := func(name string) { again.enqueueAfter(types.NamespacedName{Name: name}, 0) }
	enqueueAll := func(_ watch.InputEvent, keys ...types.NamespacedName) {
		for _, key := range keys {
			enqueue(key.Name)
		}
	}
	inputs, overlays := watch.NewInputs(m.manager, enqueueAll), watch.NewInputs(m.manager, enqueueAll)
	r := &packages.Reconciler{
		Cluster: m.own.caches.Resources(of.Client), Revisions: &cluster.Live{Client: m.own.caches.Direct, Direct: m.own.caches.Direct},
		ConfigMaps: sourceConfigMaps{inputs}, Overlays: clusterOverlays{overlays, m.manager.GetRESTMapper(), func(key types.NamespacedName) { again.enqueueAfter(key, overlaysAgain) }}, Registries: o.Registries, Secrets: pullSecrets{m.own.caches.Direct, o.PullSecretNamespace},
		Examiner: e, Server: m, Versions: m, Accounts: m, Namespace: o.Namespace, Planner: planner{m}, Recorder: m.own.recorder, Observer: measured, Selector: selector, Definitions: servedDefinitions{m},
		Enqueue: enqueue, Log: m.options.Log, Now: time.Now, Followed: m.options.LeaderElection,
	}
	m.mu.Lock()
	m.packageChanged = enqueue
	m.mu.Unlock()
	decides := decidesAboutPackages(m.options, m.Elected())
	ctrlr, err := m.newController("package."+packages.Kind.Group, packages.Kind.Kind, "", decideOrFollow(r, decides), nil)
	if err != nil {
		return nil, err
	}
	changes := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !decides() || specOrMetadataChanged.Update(e) }}
	if err := ctrlr.Watch(source.Kind[client.Object](of.Cache, watch.NewObject(packages.Kind), &handler.EnqueueRequestForObject{}, changes)); err != nil {
		return nil, err
	}
	if err := ctrlr.Watch(again); err != nil {
		return nil, err
	}
	steps := manager.Runnable(ctrlr)
	if m.options.LeaderElection {
		steps = watch.EveryProcess(ctrlr.Start)
	} else {
		r.Await()
	}
	if m.options.LeaderElection && m.options.Shard.IsPrimary() {
		r.Holds = m.held
	}
	first := manager.RunnableFunc(func(ctx context.Context) error { m.expectPackages(ctx, r); return nil })
	found := watch.EveryProcess(func(ctx context.Context) error {
		m.packageMissing.retry(ctx, "listing the Packages", listPackages(ctx, r, r.Begun.Expect))
		return nil
	})
	// A step that decides may come as soon as the process leads, so what it reads is there before that.
	for _, part := range []manager.Runnable{watch.EveryProcess(of.Start), watch.EveryProcess(inputs.Start), watch.EveryProcess(overlays.Start), steps, first, found} {
		if err := m.manager.Add(part); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// servedDefinitions knows which definitions of the packages of a manager are gone.
type servedDefinitions struct{ manager *Manager }

// Gone implements packages.Definitions.
func (s servedDefinitions) Gone(kind schema.GroupVersionKind) bool {
	c := s.manager.controller(kind.GroupKind())
	return c != nil && c.added.Load() && c.resources.Gone()
}

// decideOrFollow returns what is done about a Package: this process decides, or serves what another one has written in the status.
func decideOrFollow(r *packages.Reconciler, decides func() bool) reconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		if decides() {
			return r.Reconcile(ctx, key)
		}
		return r.Follow(ctx, key)
	}
}

// decidesAboutPackages returns a function that reports whether this process decides about Packages. One that stands by does not, nor does
// one that has another shard than the first.
func decidesAboutPackages(o Options, elected <-chan struct{}) func() bool {
	return func() bool { return o.Shard.IsPrimary() && (!o.LeaderElection || isClosed(elected)) }
}

// expectPackages passes the Packages that exist when the process becomes the leader to the reconciler, and has each of them reconciled: until
// then, it may have been followed.
func (m *Manager) expectPackages(ctx context.Context, r *packages.Reconciler) {
	r.Await()
	select {
	case <-m.Elected():
	case <-ctx.Done():
		return
	}
	m.packageMissing.retry(ctx, "listing the Packages", listPackages(ctx, r, func(names []string) {
		r.Expect(names)
		for _, name := range names {
			r.Enqueue(name)
		}
	}))
}

// listPackages returns a function that says which Packages there are, and errors if that is not known.
func listPackages(ctx context.Context, r *packages.Reconciler, say func(names []string)) func() error {
	return func() error {
		all, err := r.Cluster.ListCached(ctx, cluster.Selection{Kind: packages.Kind})
		if err != nil {
			return err
		}
		names := make([]string, len(all))
		for i, u := range all {
			names[i] = u.GetName()
		}
		say(names)
		return nil
	}
}

// sourceConfigMaps watches the ConfigMaps that Packages refer to.
type sourceConfigMaps struct{ inputs *watch.Inputs }

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// Get implements packages.ConfigMaps.
func (c sourceConfigMaps) Get(ctx context.Context, name string, ref packages.ConfigMapReference) (*unstructured.Unstructured, error) {
	owner := types.NamespacedName{Name: name}
	found, err := c.inputs.List(ctx, owner, cluster.Selection{Kind: configMapKind, Namespace: ref.Namespace, Name: ref.Name})
	c.inputs.Refer(owner, []program.Input{{Kind: configMapKind, Namespace: ref.Namespace, Object: ref.Name}}, false)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Forget implements packages.ConfigMaps.
func (c sourceConfigMaps) Forget(name string) {
	c.inputs.Refer(types.NamespacedName{Name: name}, nil, false)
}

// clusterOverlays watches the Overlays, as soon as there is a Package.
type clusterOverlays struct {
	inputs *watch.Inputs
	mapper meta.RESTMapper
	again  func(types.NamespacedName)
}

// List implements packages.Overlays. An operator that does not install definitions may come before that of
// Overlay: until it is there, there are no Overlays, and nothing to watch.
func (c clusterOverlays) List(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	key := types.NamespacedName{Name: name}
	if _, err := c.mapper.RESTMapping(packages.OverlayKind.GroupKind(), packages.OverlayKind.Version); meta.IsNoMatchError(err) {
		c.again(key)
		return nil, nil
	}
	return c.inputs.List(ctx, key, cluster.Selection{Kind: packages.OverlayKind})
}

// Forget implements packages.Overlays.
func (c clusterOverlays) Forget(name string) {
	c.inputs.Refer(types.NamespacedName{Name: name}, nil, false)
}

// pullSecrets reads Secrets of one namespace, each when it is needed: no Secret is held in memory.
type pullSecrets struct {
	direct    client.Reader
	namespace string
}

// PullSecret implements packages.Secrets.
func (p pullSecrets) PullSecret(ctx context.Context, name string) ([]byte, error) {
	if p.namespace == "" {
		return nil, errors.New("the namespace of the operator is not known; --pull-secret-namespace names it")
	}
	secret := &corev1.Secret{}
	err := p.direct.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Secret %s/%s", p.namespace, name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the operator may not get Secret %s/%s; operetta rbac --pull-secret %s prints the role", p.namespace, name, name)
	case err != nil:
		return nil, fmt.Errorf("getting Secret %s/%s: %w", p.namespace, name, err)
	case secret.Type != corev1.SecretTypeDockerConfigJson:
		return nil, fmt.Errorf("the Secret %s/%s has the type %q, not %s", p.namespace, name, secret.Type, corev1.SecretTypeDockerConfigJson)
	}
	return secret.Data[corev1.DockerConfigJsonKey], nil
}

// Resources returns the custom resources of a kind that is served, from the cache.
func (m *Manager) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]packages.Resource, error) {
	c := m.controller(kind.GroupKind())
	if c == nil || !c.added.Load() {
		return nil, fmt.Errorf("%s is not served", kind.GroupKind())
	}
	ctx, cancel := context.WithTimeout(ctx, watch.SyncTimeout)
	defer cancel()
	all, err := c.resources.List(ctx, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
	}
	out := make([]packages.Resource, len(all))
	for i, u := range all {
		out[i] = resourceOf(u)
	}
	return out, nil
}

// Remaining returns at most limit of the custom resources of a kind that the API server has, in all namespaces
// that the operator may list.
func (m *Manager) Remaining(ctx context.Context, kind schema.GroupVersionKind, limit int) ([]packages.Resource, error) {
	mapping, err := m.manager.GetRESTMapper().RESTMapping(kind.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	by, done, err := m.identityOf(m.accountOf(kind.GroupKind()))
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := resources(ctx, by.caches.Direct, mapping.GroupVersionKind, "", limit)
	if apierrors.IsForbidden(err) && !m.options.Namespaces.All() {
		out, err = m.remainingIn(ctx, by.caches.Direct, mapping.GroupVersionKind, limit)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// remainingIn returns at most limit of the custom resources of a kind in the namespaces that are served. One that cannot be
// listed is an error: what is there would be left alone.
func (m *Manager) remainingIn(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, limit int) ([]packages.Resource, error) {
	var out []packages.Resource
	for _, namespace := range m.options.Namespaces {
		found, err := resources(ctx, from, kind, namespace, limit-len(out))
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", namespace, err)
		}
		if out = append(out, found...); len(out) >= limit {
			break
		}
	}
	return out, nil
}

// resources lists at most limit custom resources of a namespace, or of all for "".
func resources(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, namespace string, limit int) ([]packages.Resource, error) {
	list := newList(kind)
	if err := from.List(ctx, list, client.Limit(int64(limit)), client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
	}
	out := make([]packages.Resource, len(list.Items))
	for i := range list.Items {
		out[i] = resourceOf(&list.Items[i])
	}
	return out, nil
}

// resourceOf returns what a canary has to know of a custom resource.
func resourceOf(u *unstructured.Unstructured) packages.Resource {
	out := packages.Resource{
		NamespacedName: client.ObjectKeyFromObject(u), UID: u.GetUID(), Labels: u.GetLabels(),
		Pin:    u.GetAnnotations()[reconcile.AnnotationRevisionPin],
		Paused: u.GetAnnotations()[reconcile.AnnotationPaused] == "true", Deleted: u.GetDeletionTimestamp() != nil,
	}
	is, _ := u.Object["status"].(map[string]any)
	out.Digest, _, _ = unstructured.NestedString(is, "package", "digest")
	conditions, _ := is["conditions"].([]any)
	for _, item := range conditions { // as plain maps: there may be thousands of resources
		c, _ := item.(map[string]any)
		switch c["type"] {
		case status.ConditionReady:
			out.Ready = c["status"] == string(metav1.ConditionTrue)
			out.Reason, _ = c["reason"].(string)
			changed, _ := c["lastTransitionTime"].(string)
			out.Changed, _ = time.Parse(time.RFC3339, changed)
		case status.ConditionStalled:
			out.Failed = c["status"] == string(metav1.ConditionTrue)
		}
	}
	return out
}
