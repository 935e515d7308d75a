package reconcile

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/rollout"
)

// reportForbidden says once, in the log and in an event, why the status cannot be written and what
// to do about it: no status will ever say so. It says it again only after a write succeeded.
func (s *state) reportForbidden(err error) {
	if !apierrors.IsForbidden(err) || s.memory.statusForbidden {
		return
	}
	s.memory.statusForbidden = true
	remedy := forbiddenRemedy(err)
	s.log.Error(err, "the operator may not write the status", "remedy", remedy)
	s.recordEvent(rollout.Event{Reason: "StatusForbidden", Warning: true, Message: "The operator may not write the status: " + remedy})
}

// forbiddenRemedy tells a denial by an admission policy or webhook from a missing permission. Only
// a denial has causes. That of the policies of operetta install names the users that may write.
func forbiddenRemedy(err error) string {
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok && refusal.ErrStatus.Details != nil {
		for _, cause := range refusal.ErrStatus.Details.Causes {
			return fmt.Sprintf("admission denies it: %s. Run the operator as a user that the policies of operetta install name, "+
				"or apply them again as operetta install --operator-user prints them for the operator's user; kubectl auth whoami prints that user", cause.Message)
		}
	}
	return fmt.Sprintf("it has no permission: grant patch on the status of the resource (%v)", err)
}
