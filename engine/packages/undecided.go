package packages

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/status"
)

// conditionUndecided is True while the process that reconciles a Package serves nothing of it, and has not decided so: it has begun
// again, and cannot check or read what was accepted last. Those who follow go on with what they serve, which they have checked themselves.
// Without the condition, nothing is to be served: its check has found faults, it is not accepted any more, or another package has its kind.
const conditionUndecided = "Undecided"

// undecided returns the condition, or nil. A status that has said of no version that it is served has nobody who could go on.
func undecided(p Package, s *state, out *result, before map[string]any) *metav1.Condition {
	if s.served != nil || out.undecided == nil || p.deleted() {
		return nil
	}
	if digest, _ := before["digest"].(string); digest == "" && !isUndecided(before) {
		return nil
	}
	return &metav1.Condition{
		Type: conditionUndecided, Status: metav1.ConditionTrue, Reason: string(ReasonNotServed),
		Message: fmt.Sprintf("other processes go on with what they serve: %v", out.undecided),
	}
}

// isUndecided reports whether a status says that those who follow are to go on.
func isUndecided(is map[string]any) bool {
	c := status.Condition(is, conditionUndecided)
	return c != nil && c.Status == metav1.ConditionTrue
}
