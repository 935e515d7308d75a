package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RevisionUnusable returns a status that says that the resource is pinned to a version of its package that cannot serve it.
// Everything that an earlier version has observed stays as it was.
func RevisionUnusable(before map[string]any, generation int64, now time.Time, why string) map[string]any {
	message := "nothing is reconciled: " + why
	out := withConditions(before, generation, now,
		metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse, Reason: string(ReasonRevisionUnusable), Message: message},
		metav1.Condition{Type: ConditionReconciling, Status: metav1.ConditionFalse, Reason: string(PhaseFailed)},
		metav1.Condition{Type: ConditionStalled, Status: metav1.ConditionTrue, Reason: string(ReasonRevisionUnusable), Message: message},
	)
	out["phase"] = string(PhaseFailed)
	if _, known := out["observedGeneration"]; known {
		out["observedGeneration"] = generation // if it is missing, other fields were lost too, so it stays missing
	}
	return out
}
