package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster/validate"
)

// ServerDryRun is a Cluster that changes nothing. Its writes are those of another one
// that carries them out as dry runs, so that the API server's defaults, webhooks and
// refusals are the real ones, and what they would have made is what is read afterwards.
type ServerDryRun struct {
	// Cluster reads, and writes nothing that it is told to.
	Cluster

	mu sync.Mutex
	// made is what would be there; nil is what would be gone.
	made map[Ref]*unstructured.Unstructured
	// kept are fields that would stay as they are although nobody applies them.
	kept    map[Ref]*unstructured.Unstructured
	changes []Event
}

var _ Cluster = (*ServerDryRun)(nil)

// Changes returns what would have been written, in order, with what is there before and
// would be afterwards.
func (r *ServerDryRun) Changes() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// note records what a write would have made.
func (r *ServerDryRun) note(verb Verb, ref Ref, before, made *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = map[Ref]*unstructured.Unstructured{}
	}
	r.made[ref.Identity()] = made
	r.changes = append(r.changes, Event{Change: Change{Verb: verb, Ref: ref}, Before: before, Object: made})
}

// known returns what a write would have made of an object, if there was one.
func (r *ServerDryRun) known(ref Ref) (*unstructured.Unstructured, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u, ok := r.made[ref.Identity()]
	return u, ok
}

// GetCached implements Cluster.
func (r *ServerDryRun) GetCached(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if u, ok := r.known(ref); ok {
		return u, nil
	}
	return r.Cluster.GetCached(ctx, ref)
}

// GetLive implements Cluster.
func (r *ServerDryRun) GetLive(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if u, ok := r.known(ref); ok {
		return u, nil
	}
	return r.Cluster.GetLive(ctx, ref)
}

// Apply implements Cluster.
func (r *ServerDryRun) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := RefOf(object)
	if object.GetUID() == "" {
		out, err := r.Cluster.Apply(ctx, object)
		if r.wouldHaveNamespace(ref, err) {
			if out, err = object.DeepCopy(), validate.Write(nil, object, true); err != nil {
				err = WrapError(ref, "applying", err)
			}
		}
		if err != nil {
			return nil, err
		}
		r.note(Created, ref, nil, out)
		return out, nil
	}
	before, err := r.GetLive(ctx, ref) // a write names the object that it changes
	if err != nil {
		return nil, err
	}
	out, err := r.Cluster.Apply(ctx, object)
	if err != nil {
		return nil, err
	}
	r.keep(ref, out)
	r.note(Updated, ref, before, out)
	return out, nil
}

// wouldHaveNamespace reports whether an object was refused only because its namespace
// would have been created before.
func (r *ServerDryRun) wouldHaveNamespace(ref Ref, err error) bool {
	namespace := Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "Namespace"}, Name: ref.Namespace}
	made, _ := r.known(namespace)
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return made != nil && ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// HandOver implements Cluster.
func (r *ServerDryRun) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	if err := r.Cluster.HandOver(ctx, fields); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[Ref]*unstructured.Unstructured{}
	}
	r.kept[RefOf(fields).Identity()] = fields.DeepCopy()
	return nil
}

// keep puts back what was relinquished: as that was a dry run as well, a dry run of an
// apply takes it away.
func (r *ServerDryRun) keep(ref Ref, made *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fields := r.kept[ref.Identity()]
	if fields == nil {
		return
	}
	for field, value := range fields.Object {
		if of, isMap := value.(map[string]any); isMap && field != "metadata" {
			for name, v := range of {
				_ = unstructured.SetNestedField(made.Object, v, field, name) // it was there before
			}
		}
	}
}

// Replace implements Cluster.
func (r *ServerDryRun) Replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before, err := r.GetLive(ctx, RefOf(object))
	if err != nil {
		return nil, err
	}
	out, err := r.Cluster.Replace(ctx, object)
	if err != nil {
		return nil, err
	}
	r.note(Updated, RefOf(object), before, out)
	return out, nil
}

// Delete implements Cluster. What has finalizers would go later, when whoever they are
// for is done; here nobody waits for that.
func (r *ServerDryRun) Delete(ctx context.Context, ref Ref, uid types.UID) error {
	if err := r.Cluster.Delete(ctx, ref, uid); err != nil {
		return err
	}
	r.note(Deleted, ref, nil, nil)
	return nil
}
