package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rehearsal says what packages would do on a cluster, and does nothing there: its
// writes are dry runs, and it writes no status and no event.
//
// What one reconcile would have written is there for the next, so that a subsystem can
// be reconciled after the resource that it belongs to.
type Rehearsal struct {
	client  client.Client
	cluster *cluster.ServerDryRun
	options Options
	// mask hides the Secrets that were read and would be written.
	mask *diff.Mask
	// subsystems knows the kinds of the packages, and of those on the cluster.
	subsystems *subsystems
}

// NewRehearsal returns a rehearsal of packages on a cluster. It errors when that cannot
// be reached.
func NewRehearsal(config *rest.Config, options Options, programs ...*program.Program) (*Rehearsal, error) {
	served := map[schema.GroupKind]bool{}
	for _, p := range programs {
		served[p.GroupVersionKind().GroupKind()] = true
	}
	direct, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	dry := client.NewDryRunClient(direct)
	mask := &diff.Mask{}
	live := &cluster.Live{
		Client: dry, Direct: dry, Kinds: cluster.Kinds(config), Namespace: options.CustomResourceNamespace, Schemas: cluster.PublishedSchemas(config),
		Watch: func(context.Context, schema.GroupVersionKind) error { return nil },
	}
	return &Rehearsal{
		client:     dry,
		options:    options,
		mask:       mask,
		subsystems: newSubsystems(direct, options.Log, func(kind schema.GroupKind) bool { return served[kind] }),
		cluster:    &cluster.ServerDryRun{Cluster: learning{live, mask}},
	}, nil
}

// Mask hides the Secrets that were read so far.
func (r *Rehearsal) Mask() *diff.Mask { return r.mask }

// Resources returns the custom resources of a package that are there.
func (r *Rehearsal) Resources(ctx context.Context, p *program.Program) ([]*unstructured.Unstructured, error) {
	list := newList(p.GroupVersionKind())
	if err := r.client.List(ctx, list, client.InNamespace(r.options.CustomResourceNamespace)); err != nil {
		return nil, fmt.Errorf("listing %s: %w", p.GroupVersionKind().Kind, err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// Applied returns a custom resource as it would be if a person applied it.
func (r *Rehearsal) Applied(ctx context.Context, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := resource.DeepCopy()
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner("operetta-rehearsal"), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("%s: applying: %w", cluster.RefOf(resource), err)
	}
	return out, nil
}

// A Reconcile is what reconciling one custom resource now would do.
type Reconcile struct {
	Changes []cluster.Event
	// Resource is the custom resource as it would be then, or nil.
	Resource *unstructured.Unstructured
}

// Reconcile says what reconciling a custom resource would do.
func (r *Rehearsal) Reconcile(ctx context.Context, p *program.Program, resource *unstructured.Unstructured) (Reconcile, error) {
	resources := memory.New()
	resources.Serve(p.GroupVersionKind().GroupKind(), cluster.Namespaced)
	if _, err := resources.Restore(cluster.FieldManager, resource); err != nil {
		return Reconcile{}, err
	}
	before, written := len(r.cluster.Changes()), resources.Watch()
	now := time.Now()
	l := &reconcile.Reconciler{
		Kind: p.GroupVersionKind(), Resources: resources, Cluster: r.cluster, Recorder: unrecorded{}, ConfigMap: r.options.ConfigMap, Allow: r.options.Allow, Parallel: 1,
		Now: func() time.Time { return now }, Patches: unwrittenPatches{r.cluster},
		Subsystem: r.subsystems.has, NewSalt: func() string { return program.FixedSalt },
	}
	key := client.ObjectKeyFromObject(resource)
	_, err := l.StepUnpaced(ctx, key, p, func(held time.Duration) { now = now.Add(held) })
	after := resource
	for _, event := range written.Next() {
		after = event.Object // of a deleted resource whose last finalizer is gone, its last state
	}
	return Reconcile{Changes: r.cluster.Changes()[before:], Resource: after}, err
}

// Written returns the resource that a change would have left behind: a deleted one as
// it is while it waits for its finalizers.
func (r *Rehearsal) Written(ctx context.Context, change cluster.Change) (*unstructured.Unstructured, error) {
	if change.Verb != "delete" {
		return r.cluster.GetLive(ctx, change.Ref)
	}
	u, err := r.cluster.Cluster.GetLive(ctx, change.Ref)
	if err != nil || u == nil {
		return nil, err
	}
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	return u, nil
}

// unrecorded forgets events.
type unrecorded struct{}

// Record implements reconcile.Recorder.
func (unrecorded) Record(*unstructured.Unstructured, rollout.Event) {}

// learning is a cluster of which a mask learns the Secrets that are read: what a package
// copies of them is shown where it changes, whether or not they change themselves.
type learning struct {
	cluster.Cluster
	mask *diff.Mask
}

// GetCached implements cluster.Cluster.
func (l learning) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := l.Cluster.GetCached(ctx, ref)
	l.mask.Learn(u)
	return u, err
}

// GetLive implements cluster.Cluster.
func (l learning) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := l.Cluster.GetLive(ctx, ref)
	l.mask.Learn(u)
	return u, err
}

// ListCached implements cluster.Cluster.
func (l learning) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := l.Cluster.ListCached(ctx, which)
	for _, u := range all {
		l.mask.Learn(u)
	}
	return all, err
}
