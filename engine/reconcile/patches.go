package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// foundPatch is a patch and the object that it was read from.
type foundPatch struct {
	patch.Patch
	object *unstructured.Unstructured
}

// patchesOf returns the patches of a resource, except those that are being deleted. It errors when
// they cannot be read: a rollout without them would revert their changes.
func (r *Reconciler) patchesOf(ctx context.Context, key types.NamespacedName) ([]foundPatch, error) {
	if r.Patches == nil || key.Namespace == "" {
		return nil, nil
	}
	all, err := r.Patches.ListCached(ctx, cluster.Selection{Kind: patch.Kind, Namespace: key.Namespace})
	if err != nil {
		return nil, fmt.Errorf("%s %s: reading its patches: %w", r.Kind.Kind, key, err)
	}
	var out []foundPatch
	for _, u := range all {
		if u.GetDeletionTimestamp() != nil || !patch.IsFor(u, r.Kind.GroupKind(), key.Name) {
			continue
		}
		if p := patch.Parse(u); p.Targets(r.Kind.GroupKind(), key.Name) {
			out = append(out, foundPatch{p, u})
		}
	}
	return out, nil
}

func parsed(found []foundPatch) []patch.Patch {
	var out []patch.Patch
	for _, f := range found {
		out = append(out, f.Patch)
	}
	return out
}

// reportPatches writes the result of each patch into its status. If nothing was rendered, a patch
// with a result keeps it, because the objects are as they were.
func (s *state) reportPatches(ctx context.Context, result rollout.Result) error {
	reports := map[string]patch.Report{}
	for _, r := range result.Patches {
		reports[r.Patch.Name] = r
	}
	var failures []error
	for _, f := range s.patches {
		r, judged := reports[f.Name]
		if !judged {
			r = patch.NotApplied(f.Patch, patch.NotRendered, result.Completion.Fault.Message)
		}
		if judged || f.isNew() {
			failures = append(failures, s.writePatch(ctx, f, redactedReport(s.redactor, r)))
		}
	}
	return errors.Join(failures...)
}

// isNew reports whether a patch has no result for its present generation.
func (f foundPatch) isNew() bool {
	before, _, _ := unstructured.NestedMap(f.object.Object, "status")
	return patch.ObservedGeneration(before) != f.Generation
}

// patchesPaused reports in new patches that their resource is paused.
func (s *state) patchesPaused(ctx context.Context) error {
	return s.patchesNotApplied(ctx, s.key(), foundPatch.isNew, patch.TargetPaused, s.owner.String()+" is paused")
}

// targetMissing reports in the patches of a resource that it does not exist.
func (r *Reconciler) targetMissing(ctx context.Context, key types.NamespacedName) error {
	all := func(foundPatch) bool { return true }
	return r.patchesNotApplied(ctx, key, all, patch.TargetNotFound, fmt.Sprintf("there is no %s %s", r.Kind.Kind, key))
}

// patchesNotApplied reports in some patches of a resource why they have no effect.
func (r *Reconciler) patchesNotApplied(ctx context.Context, key types.NamespacedName, which func(foundPatch) bool, reason patch.Reason, message string) error {
	found, err := r.patchesOf(ctx, key)
	failures := []error{err}
	for _, f := range found {
		if which(f) {
			failures = append(failures, r.writePatch(ctx, f, patch.NotApplied(f.Patch, reason, message)))
		}
	}
	return errors.Join(failures...)
}

// writePatch writes the status of a patch if it differs.
func (r *Reconciler) writePatch(ctx context.Context, f foundPatch, report patch.Report) error {
	return f.write(ctx, r.Patches, report, r.Now())
}

func (f foundPatch) write(ctx context.Context, to cluster.Cluster, r patch.Report, now time.Time) error {
	before, _, _ := unstructured.NestedMap(f.object.Object, "status")
	after := patch.Status(before, r, now)
	if status.Equal(before, after) {
		return nil
	}
	u := cluster.Ref{GroupVersionKind: patch.Kind, Namespace: f.Namespace, Name: f.Name}.Object(f.object.GetUID())
	u.Object["status"] = after
	err := to.ApplyStatus(ctx, u)
	if apierrors.IsConflict(err) {
		return nil // it was replaced or changed, so its next reconcile has a newer result
	}
	if err != nil {
		return fmt.Errorf("patch %s/%s: writing the status: %w", f.Namespace, f.Name, err)
	}
	return nil
}

// ReportOrphanPatch reports in the status of a patch why no package handles it. It keeps a status
// that a reconciler has written, perhaps in another process. It errors when the status cannot be
// written.
func ReportOrphanPatch(ctx context.Context, to cluster.Cluster, u *unstructured.Unstructured, reason patch.Reason, message string, now time.Time) error {
	f := foundPatch{patch.Parse(u), u}
	before, _, _ := unstructured.NestedMap(u.Object, "status")
	switch patch.ReasonOf(before) {
	case "", patch.NoSuchKind, patch.TargetClusterScoped:
	default:
		if !f.isNew() {
			return nil
		}
	}
	return f.write(ctx, to, patch.NotApplied(f.Patch, reason, message), now)
}
