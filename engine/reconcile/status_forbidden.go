package reconcile

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// An ownWrite is what the engine writes to the custom resource itself. If that is refused, nothing is applied, and no status
// says so.
type ownWrite struct {
	// what it is, and what grants it.
	what, grant string
	// event is recorded if it is refused, with a message.
	event rollout.Event
}

// The writes of the engine to the custom resource.
var (
	ownStatusWrite    = ownWrite{"the status", "patch on the status of the resource", rollout.Event{Reason: "StatusForbidden", Warning: true}}
	ownFinalizerWrite = ownWrite{"the finalizer", "patch on the resource", rollout.Event{Reason: "FinalizerForbidden", Warning: true}}
)

// A reportedRefusal says what an event has reported about a write that is refused.
type reportedRefusal struct {
	// deleting is true if it was reported since the resource is being deleted.
	deleting bool
}

// reportRefused says once, in the log and in an event, why the resource cannot be written and what to do about it: no status
// will ever say so. It says it again only after the write succeeded, or when the resource is deleted, because something else
// helps then: an object of a namespace that ends may go, and wake its resource, before that is deleted itself.
func (s *state) reportRefused(w ownWrite, err error) {
	ending := s.cr.GetDeletionTimestamp() != nil && s.owner.Namespace != ""
	reported, known := s.memory.refusals[w]
	if !isRefusal(err) || known && (!ending || reported.deleting) {
		return
	}
	if s.memory.refusals == nil {
		s.memory.refusals = map[ownWrite]reportedRefusal{}
	}
	s.memory.refusals[w] = reportedRefusal{ending}
	remedy := w.remedy(err, ending)
	s.log.Error(err, "the operator may not write "+w.what, "remedy", remedy)
	w.event.Message = "The operator may not write " + w.what + ": " + remedy
	s.recordEvent(w.event)
}

// isRefusal reports whether the API server has refused a write that it would refuse again. An admission policy chooses the
// code of its denial.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || (apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err)) && len(cluster.CausesOf(err)) > 0
}

// remedy tells a denial by an admission policy or webhook from a missing permission, and from a definition that does not
// allow a field. Only a missing permission has no causes, and only the definition names a field. The policies of operetta
// install name the users that may write.
//
// A namespace that is being deleted loses its Roles before, after or between the resources in it, and nobody can create others there. Whether
// it is being deleted is something that an operator without Roles may not ask.
func (w ownWrite) remedy(err error, ending bool) string {
	if causes := cluster.CausesOf(err); len(causes) > 0 {
		if causes[0].Field != "" {
			return fmt.Sprintf("the definition does not allow %s: %s. Apply the definition that operetta crd prints", causes[0].Field, causes[0].Message)
		}
		return fmt.Sprintf("admission denies it: %s. Run the operator as a user that the policies of operetta install name, "+
			"or apply them again as operetta install --operator-user prints them for the operator's user; kubectl auth whoami prints that user", causes[0].Message)
	}
	remedy := fmt.Sprintf("it has no permission: grant %s (%v)", w.grant, err)
	if ending {
		remedy += ". The resource is being deleted: if its namespace is as well, the Roles in it are gone, and no others can be created there: " +
			"apply what operetta rbac prints without --namespace, and delete it once the namespace is gone"
	}
	return remedy
}
