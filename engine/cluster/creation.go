package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"operetta.dev/engine/object"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// If two resources look for the same object at the same time, both find nothing, and the later apply would take the
// object from the earlier one. An apply has no precondition that the object does not exist, but its resource version is
// one if no object can have that. Besides, an API server of a kind of its own may not compare versions:
//
//   - Within a process, Creations lets one of them go first, and the other one looks again.
//   - Between processes, the status code of the response tells: 201 if the object was created, 200 if
//     it existed. An object that was overwritten is restored.

// Creations are the objects that this process is creating, or has created recently.
type Creations struct {
	mu     sync.Mutex
	busy   map[Ref]*creation
	lately *lru.Cache
}

type creation struct {
	mu      sync.Mutex
	waiting int
}

// rememberedCreations bounds how many recent creations are kept. A creation that is dropped is older
// than any read that is still in progress.
const rememberedCreations = 10_000

// NewCreations returns the Creations that the Lives of one process share.
func NewCreations() *Creations {
	return &Creations{busy: map[Ref]*creation{}, lately: lru.New(rememberedCreations)}
}

// begin waits until no other goroutine creates an object. The caller calls end after its creation.
func (c *Creations) begin(ref Ref) (end func()) {
	c.mu.Lock()
	one := c.busy[ref]
	if one == nil {
		one = &creation{}
		c.busy[ref] = one
	}
	one.waiting++
	c.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		if one.waiting--; one.waiting == 0 {
			delete(c.busy, ref)
		}
	}
}

// create applies an object that was found to be absent. It errors with AlreadyExists if somebody else
// has created the object in the meantime, and leaves that one unchanged.
func (l *Live) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := RefOf(object)
	if l.Creations != nil {
		defer l.Creations.begin(ref.Identity())()
		if err := l.createdLately(ctx, ref); err != nil {
			return nil, err
		}
	}
	code := 0
	out, err := l.applyAbsent(context.WithValue(ctx, answerKey{}, &code), object)
	if err != nil {
		return nil, err
	}
	if code == http.StatusOK {
		return nil, l.restoreTaken(ctx, out)
	}
	if l.Creations != nil {
		l.Creations.lately.Add(ref.Identity(), true)
	}
	return out, nil
}

// versionOfNone is a resource version that no object has: it is the revision of an empty store. An API server compares it with
// the version of an object that exists, and takes no notice of it when it creates one.
const versionOfNone = "1"

// applyAbsent applies an object on the condition that it does not exist. It errors with AlreadyExists if it does.
func (l *Live) applyAbsent(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	conditional := object.ShallowCopy(u)
	conditional.SetResourceVersion(versionOfNone)
	out, err := l.applyForced(ctx, conditional)
	if !apierrors.IsConflict(err) && !apierrors.IsBadRequest(err) {
		return out, err
	}
	// Something else may be in conflict, such as a quota, and an API server of a kind of its own might refuse the condition.
	found, failure := get(ctx, l.Direct, RefOf(u))
	switch {
	case failure != nil:
		return nil, failure
	case found != nil:
		return nil, AlreadyExists(RefOf(u))
	}
	return l.applyForced(ctx, u)
}

// createdLately errors with AlreadyExists if this process has created the object recently and it
// still exists.
func (l *Live) createdLately(ctx context.Context, ref Ref) error {
	if _, lately := l.Creations.lately.Get(ref.Identity()); !lately {
		return nil
	}
	u, err := get(ctx, l.Direct, ref)
	if err != nil || u == nil {
		return err
	}
	return AlreadyExists(ref)
}

// restoreTries bounds how often restoring an object is retried after a conflict.
const restoreTries = 5

// restoreTaken restores an object that existed although an apply should have created it, and returns
// AlreadyExists.
func (l *Live) restoreTaken(ctx context.Context, taken *unstructured.Unstructured) error {
	ref := RefOf(taken)
	was, err := l.before(ctx, taken)
	if err != nil {
		return fmt.Errorf("%s: it appeared while it was being created, and what it was cannot be read: %w", ref, err)
	}
	if was != nil && maps.Equal(was.GetAnnotations(), taken.GetAnnotations()) && equality.Semantic.DeepEqual(was.GetOwnerReferences(), taken.GetOwnerReferences()) {
		// The object had the same marks before: an earlier request created it, but its response was
		// lost. This apply may have changed nothing, so the previous write may be somebody else's.
		return AlreadyExists(ref)
	}
	now := taken
	for range restoreTries {
		if was == nil || now == nil || now.GetUID() != was.GetUID() || !maps.Equal(now.GetAnnotations(), taken.GetAnnotations()) {
			break // it was deleted, or somebody else has taken it over by now
		}
		next := was.DeepCopy()
		next.SetResourceVersion(now.GetResourceVersion())
		err := l.Direct.Update(ctx, next, client.FieldOwner(FieldManager))
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			return WrapError(ref, "putting back what it was", err)
		}
		if now, err = get(ctx, l.Direct, ref); err != nil {
			return err
		}
	}
	return AlreadyExists(ref)
}

// before returns an object as it was before its last write, or nil if that write created it.
// Resource versions are revisions of the API server's store, which count every write, and a list
// can be requested at a revision.
func (l *Live) before(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	version, err := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("resource version %q: %w", u.GetResourceVersion(), err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(u.GroupVersionKind().GroupVersion().WithKind(u.GetKind() + "List"))
	err = l.Direct.List(ctx, list, client.InNamespace(u.GetNamespace()), &client.ListOptions{Raw: &metav1.ListOptions{
		FieldSelector:        "metadata.name=" + u.GetName(),
		ResourceVersion:      strconv.FormatUint(version-1, 10),
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// answerKey is the key of a *int in the context of a request, which receives the status code of the
// response.
type answerKey struct{}

// WithStatusCodes returns a configuration whose clients report the status code of each response to a
// Live. Without it, a Live does not notice that an object which it meant to create existed.
func WithStatusCodes(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(inner http.RoundTripper) http.RoundTripper { return answers{inner} })
	return out
}

type answers struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.inner.RoundTrip(r)
	if code, ok := r.Context().Value(answerKey{}).(*int); ok && err == nil {
		*code = resp.StatusCode
	}
	return resp, err
}
