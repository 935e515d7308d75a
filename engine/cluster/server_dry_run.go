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

// ServerDryRun is a Cluster that changes nothing. It passes writes to a Cluster that carries them out
// as dry runs, so that defaults, webhooks and rejections are those of the API server. Later reads
// return what the writes would have made.
type ServerDryRun struct {
	// Cluster reads, and carries out writes as dry runs.
	Cluster

	mu sync.Mutex
	// made are the objects that would have been written; nil stands for a deleted one.
	made map[Ref]*unstructured.Unstructured
	// kept are fields that were handed over, and so would stay although they are no longer applied.
	kept    map[Ref]*unstructured.Unstructured
	changes []ObjectChange
}

var _ Cluster = (*ServerDryRun)(nil)

// Changes returns the writes so far in order, each with the object before and after it.
func (r *ServerDryRun) Changes() []ObjectChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// note records the result of a write.
func (r *ServerDryRun) note(op Operation, ref Ref, before, made *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = map[Ref]*unstructured.Unstructured{}
	}
	r.made[ref.Identity()] = made
	r.changes = append(r.changes, ObjectChange{Change: Change{Operation: op, Ref: ref}, Before: before, Object: made})
}

// known returns the result of the last write of an object, if there was one.
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
	before, err := r.GetLive(ctx, ref)
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

// wouldHaveNamespace reports whether an object was rejected only because its namespace does not exist,
// although the dry run has created it before.
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

// keep restores fields that were handed over. The hand-over was a dry run, too, so the dry run of an
// apply removes them.
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

// Delete implements Cluster. An object with finalizers counts as deleted at once: nothing waits for
// them in a dry run.
func (r *ServerDryRun) Delete(ctx context.Context, ref Ref, uid types.UID) error {
	if err := r.Cluster.Delete(ctx, ref, uid); err != nil {
		return err
	}
	r.note(Deleted, ref, nil, nil)
	return nil
}
