package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
)

// claims are the Packages that serve a kind, or are about to.
type claims struct {
	mu sync.Mutex
	by map[schema.GroupKind]string
}

// claim makes a Package the only one of a kind.
func (r *Reconciler) claim(ctx context.Context, p Package, s *state, kind schema.GroupKind) *problem {
	others, err := r.Cluster.ListCached(ctx, cluster.Selection{Kind: Kind})
	if err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	by, ours := r.claims.by[kind], s.served != nil && s.served.GroupVersionKind().GroupKind() == kind
	var holder string
	switch from := r.Server.ServedBy(kind); {
	case ours, by == p.Name && from == "":
		return nil
	case by != "" && by != p.Name:
		holder = Package{Name: by}.origin()
	case from != "":
		holder = from
	default:
		holder = lastHolder(p, others, kind)
	}
	if holder != "" {
		return &problem{stage: serving, reason: ReasonKindTaken, message: fmt.Sprintf("%s and %s both serve %s", holder, p.origin(), kind), again: claimAgain}
	}
	if r.claims.by == nil {
		r.claims.by = map[schema.GroupKind]string{}
	}
	r.claims.by[kind] = p.Name
	return nil
}

// only ends the claims of a Package but that of one kind: its content was another one before. Without a kind it ends all.
func (c *claims) only(name string, kind schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.by, func(k schema.GroupKind, by string) bool { return by == name && k != kind })
}

// lastHolder returns the other Package that has served a kind before this process began, or "". Which of
// two Packages loads first must not decide which one serves.
func lastHolder(p Package, all []*unstructured.Unstructured, kind schema.GroupKind) string {
	serves := func(u *unstructured.Unstructured) bool { return servedKind(u).GroupKind() == kind }
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool {
		return u.GetName() != p.Name && u.GetDeletionTimestamp() == nil && serves(u)
	})
	if i < 0 || serves(p.object) {
		return ""
	}
	return Package{Name: all[i].GetName()}.origin()
}

// release ends the claim of a kind, unless it is the one that is claimed now.
func (c *claims) release(was, now schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was != now {
		delete(c.by, was)
	}
}

// A KindHeldError says that the definition of a kind is that of a Package which another operator serves.
type KindHeldError struct{ Definition, Package string }

// Error names both.
func (e *KindHeldError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s is that of Package %s, which another operator serves; delete that Package first", e.Definition, e.Package)
}

// install writes the definition of a Package. It errors with a KindHeldError if the present one is that of a
// Package that this operator does not select: the operator of that Package knows nothing of claims here. A process that follows only waits until another one has written it.
func (r *Reconciler) install(ctx context.Context, p Package, s *state, definition *apiextensionsv1.CustomResourceDefinition) error {
	if s.follows {
		return r.Examiner.AwaitCRD(ctx, definition)
	}
	err := r.Examiner.InstallCRD(ctx, crd.WithAccount(definition, p.account.String()), func(ctx context.Context, owner string) error {
		if owner == p.Name || owner == "" { // who has removed the label meanwhile has not replaced the definition
			return nil
		}
		u, err := r.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: Kind, Name: owner})
		if err != nil {
			return fmt.Errorf("looking for Package %s: %w", owner, err)
		}
		if u == nil || r.Selector.Matches(labels.Set(u.GetLabels())) {
			return nil // there is none, or its claim is known here
		}
		if served := servedKind(u); served.Kind != "" && served.GroupKind() != (schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}) {
			return nil // it has gone over to another kind
		}
		return &KindHeldError{definition.Name, owner}
	})
	s.gone = s.gone && err != nil
	return err
}
