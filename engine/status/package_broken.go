package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition PackageBroken.
const (
	// brokenLastGood: the last good version of the package serves.
	brokenLastGood = "LastGoodVersion"
	// brokenUnserved: nothing is reconciled.
	brokenUnserved = "NotServed"
	// brokenAsking: a process asks whether another one serves the resource. The other one
	// answers by removing the condition.
	brokenAsking = "Asking"
)

// PackageBroken returns a status that says that the package is wrong and no version of it is
// served. Everything that an earlier version has observed stays as it was; the generation
// is that which nobody has acted upon.
func PackageBroken(before map[string]any, generation int64, now time.Time, fault string) map[string]any {
	message := "the package is wrong, and nothing is reconciled until that is mended: " + fault
	return unreconciled(before, generation, now, ReasonPackageBroken, message,
		metav1.Condition{Type: ConditionPackageBroken, Status: metav1.ConditionTrue, Reason: brokenUnserved, Message: fault})
}

// unreconciled returns a status that says why nothing is reconciled, with other conditions.
func unreconciled(before map[string]any, generation int64, now time.Time, why Reason, message string, others ...metav1.Condition) map[string]any {
	out := withConditions(before, generation, now, append(others,
		metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse, Reason: string(why), Message: message},
		metav1.Condition{Type: ConditionReconciling, Status: metav1.ConditionFalse, Reason: string(PhaseFailed)},
		metav1.Condition{Type: ConditionStalled, Status: metav1.ConditionTrue, Reason: string(why), Message: message},
	)...)
	out["phase"] = string(PhaseFailed)
	if _, known := out["observedGeneration"]; known {
		out["observedGeneration"] = generation // if it is missing, other fields were lost too, so it stays missing
	}
	return out
}

// AskWhetherServed returns a status that asks whether another process serves the resource. Nothing
// else of it changes.
func AskWhetherServed(before map[string]any, generation int64, now time.Time) map[string]any {
	return withConditions(before, generation, now, metav1.Condition{
		Type: ConditionPackageBroken, Status: metav1.ConditionUnknown, Reason: brokenAsking,
		Message: "an operator whose package is broken asks whether another operator serves this resource",
	})
}

// SaysNotServed reports whether a status says, or asks whether, nobody serves the resource.
// The process that serves the resource removes the condition.
func SaysNotServed(s map[string]any) bool {
	c := Condition(s, ConditionPackageBroken)
	return c != nil && (c.Reason == brokenUnserved || c.Reason == brokenAsking)
}

// outdated is the condition of a resource that the last good version of a package serves.
func outdated(in Input) metav1.Condition {
	return metav1.Condition{
		Type: ConditionPackageBroken, Status: metav1.ConditionTrue, Reason: brokenLastGood,
		Message: "the last good version " + in.Digest + " serves, as the present one is wrong: " + in.PackageFault,
	}
}
