package reconcile

import (
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/status"
)

// An Observer is notified of the states of resources, such as for metrics.
type Observer interface {
	// Observe is called with what a reconcile has found out, even if the status could not be written yet.
	Observe(key types.NamespacedName, found status.Summary)
	// Gone is called when a resource does not exist any more.
	Gone(key types.NamespacedName)
}

// observe notifies the observer of the status that is to be written.
func (s *state) observe(after map[string]any) {
	if s.Observer != nil {
		s.Observer.Observe(s.key(), status.Summarize(after))
	}
}

// observeGone notifies the observer that a resource does not exist any more.
func (r *Reconciler) observeGone(key types.NamespacedName) {
	if r.Observer != nil {
		r.Observer.Gone(key)
	}
}
