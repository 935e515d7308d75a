package controller

import (
	"context"
	"fmt"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
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
	s := &rehearsedStore{resource: resource.DeepCopy()}
	before := len(r.cluster.Changes())
	now := time.Now()
	l := &reconcile.Reconciler{
		Kind: p.GroupVersionKind(), Store: s, Cluster: r.cluster, Recorder: unrecorded{}, Inputs: directInputs{r.client, r.mask}, ConfigMap: r.options.ConfigMap, Allow: r.options.Allow, Parallel: 1,
		Now: func() time.Time { return now }, Patches: rehearsedPatches{r.client},
		Subsystem: r.subsystems.has, NewSalt: func() string { return program.FixedSalt },
	}
	key := client.ObjectKeyFromObject(resource)
	_, err := l.StepUnpaced(ctx, key, p, func(held time.Duration) { now = now.Add(held) })
	return Reconcile{Changes: r.cluster.Changes()[before:], Resource: s.resource}, err
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

// rehearsedStore holds one custom resource.
type rehearsedStore struct{ resource *unstructured.Unstructured }

var _ reconcile.Store = (*rehearsedStore)(nil)

// Get implements reconcile.Store.
func (s *rehearsedStore) Get(context.Context, types.NamespacedName) (*unstructured.Unstructured, error) {
	return s.resource.DeepCopy(), nil
}

// ApplyStatus implements reconcile.Store.
func (s *rehearsedStore) ApplyStatus(_ context.Context, resource *unstructured.Unstructured) error {
	s.resource.Object["status"] = resource.DeepCopy().Object["status"]
	return nil
}

// ApplyFinalizers implements reconcile.Store.
func (s *rehearsedStore) ApplyFinalizers(_ context.Context, resource *unstructured.Unstructured) error {
	s.resource.SetFinalizers(resource.GetFinalizers())
	return nil
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

// directInputs reads inputs without watching them.
type directInputs struct {
	client client.Client
	mask   *diff.Mask
}

var _ rollout.Inputs = directInputs{}

// Read implements rollout.Inputs.
func (d directInputs) Read(ctx context.Context, _ types.NamespacedName, in program.Input) (program.Found, error) {
	out := program.Found{Several: in.Object == ""}
	list := newList(in.Kind)
	options := []client.ListOption{client.InNamespace(in.Namespace), client.MatchingLabels(in.Selector)}
	if in.Object != "" {
		options = append(options, &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + in.Object}})
	}
	if err := d.client.List(ctx, list, options...); err != nil {
		return out, fmt.Errorf("reading %s: %w", in.Kind.Kind, err)
	}
	sort.Slice(list.Items, func(a, b int) bool { return list.Items[a].GetName() < list.Items[b].GetName() })
	for _, u := range list.Items {
		d.mask.Learn(&u)
		out.Objects = append(out.Objects, u.Object)
	}
	return out, nil
}

// Refer implements rollout.Inputs.
func (directInputs) Refer(types.NamespacedName, []program.Input) {}

// Forget implements rollout.Inputs.
func (directInputs) Forget(types.NamespacedName) {}
