package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

// ServerOptions are the cluster, and what the operator on it is configured with.
type ServerOptions struct {
	// Cluster carries out writes as dry runs.
	Cluster cluster.Cluster
	// Apply applies a custom resource as a person does, as a dry run, and returns the result.
	Apply func(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Namespaces are those whose custom resources are served.
	Namespaces object.Namespaces
	// ConfigMap names the operator's configuration; its zero value is none.
	ConfigMap types.NamespacedName
	// Allow are the administrative annotations that count.
	Allow []string
	// Subsystem reports whether a kind is that of a package of another process.
	Subsystem func(context.Context, schema.GroupKind) (bool, error)
	// Evaluates evaluates in place of the packages; nil is nothing.
	Evaluates reconcile.Package
}

// A Server says what reconciles would do on a cluster. It carries out every write as a dry run
// of the API server, and writes no status and no event. Later reconciles read what earlier ones
// would have written, so a subsystem can follow the resource that it belongs to.
type Server struct {
	cluster  *cluster.ServerDryRun
	options  ServerOptions
	programs map[schema.GroupKind]*program.Program
	// mask hides the Secrets that were read and would be written.
	mask *diff.Mask
}

// NewServer returns a dry run of packages on a cluster.
func NewServer(options ServerOptions, programs ...*program.Program) *Server {
	mask := &diff.Mask{}
	s := &Server{
		cluster: &cluster.ServerDryRun{Cluster: learning{options.Cluster, mask}}, options: options, mask: mask,
		programs: map[schema.GroupKind]*program.Program{},
	}
	for _, p := range programs {
		s.programs[p.GroupVersionKind().GroupKind()] = p
	}
	return s
}

// Mask hides the Secrets that were read so far.
func (s *Server) Mask() *diff.Mask { return s.mask }

// Resources returns the custom resources of a package that exist, by namespace and name.
func (s *Server) Resources(ctx context.Context, p *program.Program) ([]*unstructured.Unstructured, error) {
	places := s.options.Namespaces.Lists()
	if p.Meta().ClusterScoped {
		places = []string{""}
	}
	var all []*unstructured.Unstructured
	for _, namespace := range places {
		found, err := s.cluster.ListLive(ctx, cluster.Selection{Kind: p.GroupVersionKind(), Namespace: namespace})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetNamespace(), b.GetNamespace()) })
	return all, nil
}

// Applied returns a custom resource as it would be if a person applied it.
func (s *Server) Applied(ctx context.Context, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := s.options.Apply(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("%s: applying: %w", cluster.RefOf(resource), err)
	}
	return out, nil
}

// maxResources bounds how many custom resources are reconciled, as a guard against those that
// render each other forever.
const maxResources = 10_000

// Run reconciles custom resources once each, and after each those of the packages that it would
// have written, and shows every step. It errors if the API server does not answer, or after
// maxResources.
func (s *Server) Run(ctx context.Context, queue []*unstructured.Unstructured, show func(Step)) error {
	for number := 1; len(queue) > 0; number++ {
		if number > maxResources {
			return fmt.Errorf("the dry run ends after %d custom resources: does a package render resources of its own kind?", maxResources)
		}
		step := s.Reconcile(ctx, queue[0])
		step.Number = number
		show(step)
		below, err := s.subsystems(ctx, step.Changes)
		if err != nil {
			return err
		}
		queue = slices.Concat(below, without(queue[1:], below))
	}
	return nil
}

// Reconcile reconciles one custom resource, and none of the packages that it would have written. It takes the resource
// from memory: its status and its finalizers are written there.
func (s *Server) Reconcile(ctx context.Context, resource *unstructured.Unstructured) Step {
	step := Step{Resource: cluster.RefOf(resource)}
	resources := memory.New()
	resources.Serve(step.Resource.GroupKind(), cluster.Namespaced)
	if _, step.Err = resources.Restore(cluster.FieldManager, resource); step.Err != nil {
		return step
	}
	o := newOperator(s.programs[step.Resource.GroupKind()], &clock{time.Now()}, &reconcile.Reconciler{
		Resources: resources, Cluster: s.cluster, Patches: readOnlyPatches{s.cluster},
		ConfigMap: s.options.ConfigMap, Allow: s.options.Allow, Subsystem: s.isSubsystem,
	})
	if s.options.Evaluates != nil {
		o.evaluates = s.options.Evaluates
	}
	before, written := len(s.cluster.Changes()), resources.Watch()
	_, step.Err = o.reconcile(ctx, types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()})
	step.Changes = s.cluster.Changes()[before:]
	after := resource
	for _, event := range written.Next() {
		after = event.Object // of a deleted resource whose last finalizer is gone, its last state
	}
	step.Status, _, _ = unstructured.NestedMap(after.Object, "status")
	return step
}

// isSubsystem reports whether a kind is that of one of the packages, or of another process.
func (s *Server) isSubsystem(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if s.programs[kind] != nil {
		return true, nil
	}
	return s.options.Subsystem(ctx, kind)
}

// subsystems returns the resources of the packages among changes, as they would be then.
func (s *Server) subsystems(ctx context.Context, changes []cluster.ObjectChange) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, c := range changes {
		if s.programs[c.Ref.GroupKind()] == nil {
			continue
		}
		u, err := s.written(ctx, c.Change)
		if err != nil {
			return nil, err
		}
		if u != nil {
			out = append(without(out, []*unstructured.Unstructured{u}), u)
		}
	}
	return out, nil
}

// written returns the resource that a change would have left behind: a deleted one as it is while
// it waits for its finalizers.
func (s *Server) written(ctx context.Context, change cluster.Change) (*unstructured.Unstructured, error) {
	if change.Operation != cluster.Deleted {
		return s.cluster.GetLive(ctx, change.Ref)
	}
	u, err := s.cluster.Cluster.GetLive(ctx, change.Ref)
	if err != nil || u == nil {
		return nil, err
	}
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	return u, nil
}

// without returns the resources that are not among others.
func without(list, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool {
		return slices.ContainsFunc(others, func(o *unstructured.Unstructured) bool { return cluster.RefOf(o) == cluster.RefOf(u) })
	})
}

// readOnlyPatches reads patches from the API server and writes no status of them.
type readOnlyPatches struct{ cluster.Cluster }

// ListCached implements cluster.Cluster. There are no patches for an operator that may not list
// them, or on a cluster that does not serve them.
func (p readOnlyPatches) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	out, err := p.Cluster.ListCached(ctx, which)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return out, err
}

// ApplyStatus implements cluster.Cluster.
func (readOnlyPatches) ApplyStatus(context.Context, *unstructured.Unstructured) error { return nil }

// learning is a cluster whose Secrets a mask learns as they are read: what a package copies of
// them is hidden where it changes, whether or not they change themselves.
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
	l.mask.Learn(all...)
	return all, err
}
