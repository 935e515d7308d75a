package reconcile

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/rollout"
)

// reportForbidden says once, in the log and in an event, why the status cannot be written and what
// to do about it: no status will ever say so. It says it again only after a write succeeded, or when the resource is deleted, because
// something else helps then: an object of a namespace that ends may go, and wake its resource, before that is deleted itself.
func (s *state) reportForbidden(err error) {
	ending := s.cr.GetDeletionTimestamp() != nil && s.owner.Namespace != ""
	if !apierrors.IsForbidden(err) || s.memory.statusForbidden && (!ending || s.memory.deletionForbidden) {
		return
	}
	s.memory.statusForbidden, s.memory.deletionForbidden = true, ending
	remedy := forbiddenRemedy(err, ending)
	s.log.Error(err, "the operator may not write the status", "remedy", remedy)
	s.recordEvent(rollout.Event{Reason: "StatusForbidden", Warning: true, Message: "The operator may not write the status: " + remedy})
}

// forbiddenRemedy tells a denial by an admission policy or webhook from a missing permission. Only
// a denial has causes. That of the policies of operetta install names the users that may write.
//
// A namespace that is being deleted loses its Roles before, after or between the resources in it, and nobody can create others there. Whether
// it is being deleted is something that an operator without Roles may not ask.
func forbiddenRemedy(err error, ending bool) string {
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok && refusal.ErrStatus.Details != nil {
		for _, cause := range refusal.ErrStatus.Details.Causes {
			return fmt.Sprintf("admission denies it: %s. Run the operator as a user that the policies of operetta install name, "+
				"or apply them again as operetta install --operator-user prints them for the operator's user; kubectl auth whoami prints that user", cause.Message)
		}
	}
	remedy := fmt.Sprintf("it has no permission: grant patch on the status of the resource (%v)", err)
	if ending {
		remedy += ". The resource is being deleted: if its namespace is as well, the Roles in it are gone, and no others can be created there: " +
			"apply what operetta rbac prints without --namespace, and delete it once the namespace is gone"
	}
	return remedy
}
