package reconcile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The annotations by which a person controls the reconciles of one resource.
const (
	// AnnotationPaused set to "true" stops everything but deletion. Any other value, or
	// none, takes effect at once.
	AnnotationPaused = "operetta.dev/paused"
	// AnnotationReconcileAt requests a reconcile whenever its value changes. The value that was
	// handled last is in status.lastHandledReconcileAt.
	AnnotationReconcileAt = "operetta.dev/reconcile-at"
	// AnnotationSkipHooks set to "true" deletes a resource whose hooks before deletion fail,
	// where the administrator allows it.
	AnnotationSkipHooks = "operetta.dev/skip-hooks"
	// AnnotationConfig holds configuration of the package for one resource, as YAML.
	AnnotationConfig = "operetta.dev/config"
	// AnnotationRevisionPin is the digest of the version of the package that the resource is reconciled with, where the
	// Package allows it.
	AnnotationRevisionPin = "operetta.dev/revision-pin"
	// AnnotationLogLevel set to "debug" logs every decision about this resource, where the
	// administrator allows it.
	AnnotationLogLevel = "operetta.dev/log-level"
)

// Administrative are the annotations whose effect is not limited to the resource: others rely on
// its hooks, or read the log. They have an effect only if [Reconciler.Allow] has them.
var Administrative = []string{AnnotationSkipHooks, AnnotationLogLevel}

// allowed returns the value of an administrative annotation, or "" if it is not allowed.
func (r *Reconciler) allowed(cr *unstructured.Unstructured, annotation string) string {
	if !slices.Contains(r.Allow, annotation) {
		return ""
	}
	return cr.GetAnnotations()[annotation]
}

// skipsHooks reports whether a resource is deleted although its hooks before deletion fail.
func (s *state) skipsHooks() bool { return s.allowed(s.cr, AnnotationSkipHooks) == "true" }

// withoutHooks tells people how to delete the resource without its hooks before deletion.
func (s *state) withoutHooks() string {
	if slices.Contains(s.Allow, AnnotationSkipHooks) {
		return fmt.Sprintf("the annotation %s: \"true\" deletes without them", AnnotationSkipHooks)
	}
	return fmt.Sprintf("an operator that runs with --allow-annotations=skip-hooks deletes without them what has the annotation %s: \"true\"", AnnotationSkipHooks)
}

// asked reports whether a person has requested a reconcile since the last one.
func (s *subject) asked() bool {
	at := s.cr.GetAnnotations()[AnnotationReconcileAt]
	return at != "" && at != s.before["lastHandledReconcileAt"]
}
