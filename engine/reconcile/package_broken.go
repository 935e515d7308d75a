package reconcile

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// ReportPackageBroken says in the status of a resource what is wrong with its package, no version of
// which is served, and reports whether it says so now. Nothing else is done to it, and nothing
// at all to one that is deleted or paused. It errors when the status cannot be written, also
// when it was changed meanwhile.
func (l *Reconciler) ReportPackageBroken(ctx context.Context, key types.NamespacedName, fault string) (bool, error) {
	s, err := l.fetchUninterpreted(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	before, after := s.before, status.PackageBroken(s.before, s.cr.GetGeneration(), s.Now(), fault)
	if status.Same(before, after) {
		return true, nil
	}
	if err := s.write(ctx, after); err != nil {
		return false, err
	}
	s.recordTransition(before, after)
	return true, nil
}

// AskWhetherServed asks by the status of a resource whether another process serves it, and reports
// whether there is anything to ask about. Whoever serves it takes the question away.
func (l *Reconciler) AskWhetherServed(ctx context.Context, key types.NamespacedName) (bool, error) {
	s, err := l.fetchUninterpreted(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	if status.Disputed(s.before) {
		return true, nil // as an earlier process has left it
	}
	return true, s.write(ctx, status.AskWhetherServed(s.before, s.cr.GetGeneration(), s.Now()))
}

// Disputed reports whether the status of a resource says, or asks whether, nobody serves it.
func Disputed(u *unstructured.Unstructured) bool { return status.Disputed(statusOf(u)) }

// fetchUninterpreted reads a resource that is neither deleted nor paused; nil is none. What its
// status remembers is not interpreted: it stays as it is.
func (l *Reconciler) fetchUninterpreted(ctx context.Context, key types.NamespacedName) (*state, error) {
	cr, err := l.Resources.GetCached(ctx, l.ref(key))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", l.Kind.Kind, key, err)
	}
	if cr == nil || cr.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	s := &state{
		Reconciler: l,
		log:        leveled(logr.FromContextOrDiscard(ctx), l.allowed(cr, AnnotationLogLevel)),
		cr:         cr,
		owner:      ownership.Owner{Ref: cluster.Ref{GroupVersionKind: l.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName()}, UID: cr.GetUID()},
	}
	if s.paused() {
		return nil, nil
	}
	s.before = ownStatus(cr)
	return s, nil
}
