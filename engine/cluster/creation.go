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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An apply has no precondition that says "only if it does not exist yet". Two resources
// that look for an object of one name at the same time both find nothing, and the later
// apply takes the object from the earlier one. Two things together make that impossible:
//
//   - Within a process, Creations lets one of them go first and the other one look again.
//   - Between processes, the code of the answer tells: 201 for an object that was created,
//     200 for one that was there. What was overwritten is put back as it was.

// Creations are the objects that this process is creating, or has created lately.
type Creations struct {
	mu     sync.Mutex
	busy   map[Ref]*creation
	lately *lru.Cache
}

type creation struct {
	mu      sync.Mutex
	waiting int
}

// rememberedCreations bounds the memory of what was created lately. What is forgotten was
// created long before any look that is still going on.
const rememberedCreations = 10_000

// NewCreations returns what the Lives of one process share.
func NewCreations() *Creations {
	return &Creations{busy: map[Ref]*creation{}, lately: lru.New(rememberedCreations)}
}

// begin waits until nobody else creates an object, and returns what ends that.
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

// create applies an object that was found to be absent. It errors with AlreadyExists when
// another one has come in between, which is left as it was.
func (l *Live) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := RefOf(object)
	if l.Creations != nil {
		defer l.Creations.begin(ref.Identity())()
		if err := l.createdLately(ctx, ref); err != nil {
			return nil, err
		}
	}
	code := 0
	out, err := l.applyForced(context.WithValue(ctx, answerKey{}, &code), object)
	if err != nil {
		return nil, err
	}
	if code == http.StatusOK {
		return nil, l.handBack(ctx, out)
	}
	if l.Creations != nil {
		l.Creations.lately.Add(ref.Identity(), true)
	}
	return out, nil
}

// createdLately errors with AlreadyExists when this process has created an object lately
// that is still there.
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

// handBackTries bounds how often an object is put back while others write it as well.
const handBackTries = 5

// handBack makes an object again what it was before an apply that should have created it
// found it there, and errors with AlreadyExists.
func (l *Live) handBack(ctx context.Context, taken *unstructured.Unstructured) error {
	ref := RefOf(taken)
	was, err := l.before(ctx, taken)
	if err != nil {
		return fmt.Errorf("%s: it appeared while it was being created, and what it was cannot be read: %w", ref, err)
	}
	if was != nil && maps.Equal(was.GetAnnotations(), taken.GetAnnotations()) && equality.Semantic.DeepEqual(was.GetOwnerReferences(), taken.GetOwnerReferences()) {
		// It had the same marks before: an earlier request has created it, whose answer was
		// lost, and this one may have changed nothing. The write before is somebody else's.
		return AlreadyExists(ref)
	}
	now := taken
	for range handBackTries {
		if was == nil || now == nil || now.GetUID() != was.GetUID() || !maps.Equal(now.GetAnnotations(), taken.GetAnnotations()) {
			break // somebody has it by now, or nobody
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

// before returns an object as it was before its last write, or nil when that was its
// creation. The versions of an API server's objects are those of its store, each write
// of which has one more; a list can be asked for at a version.
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

// answerKey is the key of a *int in a request's context that takes the code of its answer.
type answerKey struct{}

// WithAnswers returns a configuration whose clients tell a Live how its requests were
// answered. Without it a Live cannot tell that an object which it meant to create was
// there.
func WithAnswers(config *rest.Config) *rest.Config {
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
