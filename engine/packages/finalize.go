package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// setFinalizer keeps a deleted Package until its custom resources are gone.
func (r *Reconciler) setFinalizer(ctx context.Context, p Package) error {
	if hasFinalizer(p) || p.deleted() {
		return nil
	}
	return r.applyFinalizers(ctx, p, cluster.TeardownFinalizer)
}

func (r *Reconciler) applyFinalizers(ctx context.Context, p Package, names ...string) error {
	u := p.identity()
	u.SetFinalizers(names)
	if err := r.Cluster.ApplyFinalizers(ctx, u); err != nil {
		return fmt.Errorf("package %s: writing the finalizer: %w", p.Name, err)
	}
	return nil
}

func hasFinalizer(p Package) bool {
	return slices.Contains(p.object.GetFinalizers(), cluster.TeardownFinalizer)
}

// leavesKind returns why a Package cannot go over from the kind that it serves to another one: its resources
// would be stranded.
func (r *Reconciler) leavesKind(ctx context.Context, s *state, next schema.GroupVersionKind) *problem {
	if s.served == nil || s.served.GroupVersionKind().GroupKind() == next.GroupKind() {
		return nil
	}
	was := s.served.GroupVersionKind()
	left, err := r.remaining(ctx, s, was)
	if err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	if len(left) == 0 {
		return nil
	}
	return &problem{stage: serving, reason: ReasonKindInUse, again: claimAgain, message: fmt.Sprintf("the content serves %s, and the Package serves %s, whose resources still exist: %s; delete them first",
		next.GroupKind(), was.GroupKind(), listed(left))}
}

// maxListed is how many custom resources are listed at most to count them.
const maxListed = 500

// remaining returns the custom resources of a kind. While the cache has some, the API server is not asked.
func (r *Reconciler) remaining(ctx context.Context, s *state, kind schema.GroupVersionKind) ([]Resource, error) {
	if s.served != nil {
		if cached, err := r.Server.Resources(ctx, kind); err != nil || len(cached) > 0 {
			return cached, err
		}
	}
	return r.Server.Remaining(ctx, kind, maxListed)
}

// finalize lets a deleted Package go once it has no custom resources. Until then they are served: only the
// package knows what has to happen before their objects are deleted.
func (r *Reconciler) finalize(ctx context.Context, p Package, s *state, out *result) {
	left, err := r.remainingOfDeleted(ctx, p, s)
	if err == nil && len(left) == 0 && s.served != nil {
		// One that is created from now on is not served, and has no objects.
		kind := s.served.GroupVersionKind()
		if err = r.withdraw(ctx, p.Name, s); err == nil {
			left, err = r.Server.Remaining(ctx, kind, 1)
		}
	}
	switch {
	case err != nil:
		out.problem = &problem{stage: serving, reason: ReasonDeleting, message: err.Error(), err: err}
	case len(left) > 0:
		out.waits, out.waitAgain = fmt.Sprintf("the Package is deleted, and goes once its resources are gone; there is %s", listed(left)), countAgain
		if s.served != nil {
			out.waitAgain = deletionAgain
		}
	default:
		r.removeFinalizer(ctx, p, out)
	}
}

// remainingOfDeleted returns custom resources that a deleted Package still has. If it is not served, the definitions with
// its label say of which kind it was. Its status does not: others may have written it, and the kind in it could
// be that of Secrets, whose names would be in the conditions.
func (r *Reconciler) remainingOfDeleted(ctx context.Context, p Package, s *state) ([]Resource, error) {
	if s.served != nil {
		return r.remaining(ctx, s, s.served.GroupVersionKind())
	}
	kinds, err := r.Examiner.Defined(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	if err := r.actAsDefined(ctx, p); err != nil {
		return nil, err
	}
	var out []Resource
	for _, kind := range kinds {
		// The resources of a kind that somebody else serves by now are no longer this Package's.
		if r.Server.ServedBy(kind.GroupKind()) != "" || len(out) > 0 {
			continue
		}
		if out, err = r.Server.Remaining(ctx, kind, 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// removeFinalizer lets a deleted Package go.
func (r *Reconciler) removeFinalizer(ctx context.Context, p Package, out *result) {
	if err := r.applyFinalizers(ctx, p); err != nil {
		out.problem = &problem{stage: serving, reason: ReasonDeleting, message: err.Error(), err: err}
		return
	}
	out.gone = true
}

// listed names the first of some resources, and counts the rest. More of them change the text only by number.
func listed(all []Resource) string {
	first := slices.MinFunc(all, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
	if more := len(all) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first.String(), more)
	}
	return first.String()
}
