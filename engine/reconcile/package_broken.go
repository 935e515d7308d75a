package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// ReportPackageBroken reports in the status of a resource what is wrong with its package, of which no
// version is served. It returns whether the status says so now, and does nothing to a resource
// that is deleted or paused. It errors when the status cannot be written, also because the
// resource was changed meanwhile.
func (r *Reconciler) ReportPackageBroken(ctx context.Context, key types.NamespacedName, fault string) (bool, error) {
	s, err := r.fetchUninterpreted(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	err = s.writeChanged(ctx, status.PackageBroken(s.before, s.cr.GetGeneration(), s.Now(), fault))
	return err == nil, err
}

// ReportRevisionUnusable reports in the status of a resource why the version of its package that it is pinned to cannot serve it. It does
// nothing to a resource that is deleted or paused. It errors when the status cannot be written, also because the
// resource was changed meanwhile.
func (r *Reconciler) ReportRevisionUnusable(ctx context.Context, key types.NamespacedName, why string) error {
	s, err := r.fetchUninterpreted(ctx, key)
	if err != nil || s == nil {
		return err
	}
	return s.writeChanged(ctx, status.RevisionUnusable(s.before, s.cr.GetGeneration(), s.Now(), why))
}

// AskWhetherServed asks in the status of a resource whether another process serves it: that process
// removes the question. It returns whether there is a resource to ask about.
func (r *Reconciler) AskWhetherServed(ctx context.Context, key types.NamespacedName) (bool, error) {
	s, err := r.fetchUninterpreted(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	if status.SaysNotServed(s.before) {
		return true, nil // as an earlier process has left it
	}
	return true, s.write(ctx, status.AskWhetherServed(s.before, s.cr.GetGeneration(), s.Now()))
}

// SaysNotServed reports whether the status of a resource says, or asks whether, no process serves it.
func SaysNotServed(u *unstructured.Unstructured) bool { return status.SaysNotServed(statusOf(u)) }

// fetchUninterpreted reads a resource without the state in its status, which stays as it is. It
// returns nil for a resource that is missing, deleted or paused.
func (r *Reconciler) fetchUninterpreted(ctx context.Context, key types.NamespacedName) (*state, error) {
	cr, err := r.get(ctx, key)
	if err != nil || cr == nil || cr.GetDeletionTimestamp() != nil {
		return nil, err
	}
	s := r.newState(ctx, cr, nil, redact.New())
	if s.paused() {
		return nil, nil
	}
	return s, nil
}
