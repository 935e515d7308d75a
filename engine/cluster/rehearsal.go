package cluster

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Rehearsal is a Cluster that changes nothing. Its writes are those of another one
// that carries them out as dry runs, so that the API server's defaults, webhooks and
// refusals are the real ones, and what they would have made is what is read afterwards.
type Rehearsal struct {
	// Cluster reads, and writes nothing that it is told to.
	Cluster

	mu sync.Mutex
	// made is what would be there; nil is what would be gone.
	made    map[Ref]*unstructured.Unstructured
	changes []Change
}

var _ Cluster = (*Rehearsal)(nil)

// Changes returns what would have been written, in order.
func (r *Rehearsal) Changes() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// note records what a write would have made.
func (r *Rehearsal) note(verb Verb, ref Ref, made *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = map[Ref]*unstructured.Unstructured{}
	}
	r.made[ref.Identity()] = made
	r.changes = append(r.changes, Change{Verb: verb, Ref: ref})
}

// known returns what a write would have made of an object, if there was one.
func (r *Rehearsal) known(ref Ref) (*unstructured.Unstructured, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u, ok := r.made[ref.Identity()]
	return u, ok
}

// Get implements Cluster.
func (r *Rehearsal) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if u, ok := r.known(ref); ok {
		return u, nil
	}
	return r.Cluster.Get(ctx, ref)
}

// Read implements Cluster.
func (r *Rehearsal) Read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if u, ok := r.known(ref); ok {
		return u, nil
	}
	return r.Cluster.Read(ctx, ref)
}

// Apply implements Cluster.
func (r *Rehearsal) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	verb := Created
	if object.GetUID() != "" {
		verb = Updated // a write names the object that it changes
	}
	out, err := r.Cluster.Apply(ctx, object)
	if err != nil {
		return nil, err
	}
	r.note(verb, RefOf(object), out)
	return out, nil
}

// Replace implements Cluster.
func (r *Rehearsal) Replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := r.Cluster.Replace(ctx, object)
	if err != nil {
		return nil, err
	}
	r.note(Updated, RefOf(object), out)
	return out, nil
}

// Delete implements Cluster. What has finalizers would go later, when whoever they are
// for is done; here nobody waits for that.
func (r *Rehearsal) Delete(ctx context.Context, ref Ref, uid types.UID) error {
	if err := r.Cluster.Delete(ctx, ref, uid); err != nil {
		return err
	}
	r.note(Deleted, ref, nil)
	return nil
}
