package shadow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rbac"
)

// reads are what one comparison has read, so that it is made again when something of that changes.
type reads struct {
	// objects have the resource version that was read, or "" for one that does not exist.
	objects    map[cluster.Ref]string
	selections []cluster.Selection
}

// A source reads a cluster for the comparison of one resource. It gives out copies of the objects that the package
// renders as if they were those of the resource, and remembers what it has read.
type source struct {
	dryrun.Source

	owner ownership.Owner
	reads *reads

	mu sync.Mutex
	// live are the objects as they are in the cluster; nil stands for one that does not exist.
	live map[cluster.Ref]*unstructured.Unstructured
	// rendered are the objects that the package renders, and asIs those that were given out as they are.
	rendered, asIs map[cluster.Ref]bool
}

func newSource(from dryrun.Source, owner ownership.Owner) *source {
	return &source{
		Source: from, owner: owner, reads: &reads{objects: map[cluster.Ref]string{}}, live: map[cluster.Ref]*unstructured.Unstructured{},
		rendered: map[cluster.Ref]bool{}, asIs: map[cluster.Ref]bool{},
	}
}

// renders notes what the package renders.
func (s *source) renders(out program.Rollout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range out.Components {
		for _, o := range c.Objects {
			if !o.Identity.Known() {
				continue
			}
			scope, err := s.Scope(context.Background(), o.Identity.GroupVersionKind)
			if err != nil {
				scope = cluster.Namespaced
			}
			s.rendered[ownership.RefOf(o, s.owner.Namespace, scope).Identity()] = true
		}
	}
}

// missed reports whether an object that the package renders was given out as it is, and forgets that: everything is
// to be read again.
func (s *source) missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := false
	for ref := range s.rendered {
		out = out || s.asIs[ref]
	}
	s.asIs = map[cluster.Ref]bool{}
	return out
}

// namespaceKind is the kind of namespaces.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// read returns an object as it is in the cluster, and notes that it was read.
func (s *source) read(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := s.Source.Get(ctx, ref)
	if err != nil {
		return nil, permissionOr(err, "get", ref.Namespace)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[ref.Identity()] = u
	version := ""
	if u != nil {
		version = u.GetResourceVersion()
	}
	if ref.GroupKind() != namespaceKind || s.rendered[ref.Identity()] { // whether one exists changes nothing for what is in it
		s.reads.objects[ref] = version
	}
	return u, nil
}

// Get implements dryrun.Source.
func (s *source) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := s.read(ctx, ref)
	if err != nil || u == nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rendered[ref.Identity()] {
		s.asIs[ref.Identity()] = true
		return u, nil
	}
	return asOwned(u, s.owner), nil
}

// List implements dryrun.Source.
func (s *source) List(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := s.Source.List(ctx, which)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := dryrun.SelectionKey(which)
	if !slices.ContainsFunc(s.reads.selections, func(r cluster.Selection) bool { return dryrun.SelectionKey(r) == key }) {
		s.reads.selections = append(s.reads.selections, which)
	}
	if err != nil {
		return nil, permissionOr(err, "list", which.Namespace)
	}
	out := make([]*unstructured.Unstructured, len(all))
	for i, u := range all {
		id := cluster.RefOf(u).Identity()
		s.live[id] = u
		if out[i] = u; s.rendered[id] {
			out[i] = asOwned(u, s.owner)
			continue
		}
		s.asIs[id] = true
	}
	return out, nil
}

// Owned implements dryrun.Source. What another operator has made has no mark that would be looked for.
func (*source) Owned(context.Context, string, string, string) ([]*unstructured.Unstructured, error) {
	return nil, nil
}

// original returns an object as it is in the cluster, or nil.
func (s *source) original(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if u, known := s.seen(ref); known {
		return u, nil
	}
	return s.read(ctx, ref)
}

// seen returns an object as it was read, and whether it was.
func (s *source) seen(ref cluster.Ref) (*unstructured.Unstructured, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.live[ref.Identity()]
	return u, known
}

// all returns the objects that were read.
func (s *source) all() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.live))
}

// asOwned returns a copy of an object that an owner has made, as far as the engine can tell.
func asOwned(u *unstructured.Unstructured, owner ownership.Owner) *unstructured.Unstructured {
	out := u.DeepCopy()
	ownership.Mark(out, owner)
	refs := slices.DeleteFunc(out.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Controller != nil && *r.Controller && r.UID != owner.UID
	})
	out.SetOwnerReferences(refs)
	return out
}

// A PermissionError says which permission is missing.
type PermissionError struct {
	rbac.Permission

	Err error
}

// Error names the permission in the words of kubectl auth can-i.
func (e *PermissionError) Error() string {
	return "the permission is missing to " + e.String() + "; operetta rbac --shadow prints what is needed"
}

// Unwrap returns what the API server has answered.
func (e *PermissionError) Unwrap() error { return e.Err }

// permissionOr returns an error that names a missing permission, if that is what an error is about.
func permissionOr(err error, verb, namespace string) error {
	var answer apierrors.APIStatus // which is no error type
	if !apierrors.IsForbidden(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return err
	}
	about := answer.Status().Details
	return &PermissionError{rbac.Permission{Verb: verb, Group: about.Group, Resource: about.Kind, Namespace: namespace}, fmt.Errorf("%s: %w", verb, err)}
}
