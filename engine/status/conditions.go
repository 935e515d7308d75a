package status

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The condition types.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionPaused is there only while a person has paused the resource.
	ConditionPaused = "Paused"
	// ConditionPackageBroken is there only while the files of the package are wrong.
	ConditionPackageBroken = "PackageBroken"
	// ConditionPatchesUnread is there only while the operator may not read Patches.
	ConditionPatchesUnread = "PatchesUnread"
)

// Conditions are the types that the engine writes, in their order.
var Conditions = []string{ConditionReady, ConditionReconciling, ConditionStalled, ConditionPaused, ConditionPackageBroken, ConditionPatchesUnread}

// Condition returns the condition of a type that a status has, or nil.
func Condition(status map[string]any, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditionsOf(status), kind)
}

// conditionsOf returns the conditions of a status. A condition that cannot be read counts as missing,
// because whoever may write a status may write anything.
func conditionsOf(status map[string]any) []metav1.Condition {
	var out []metav1.Condition
	for _, v := range list(status, "conditions") {
		var c metav1.Condition
		m, ok := v.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// NewConditions returns conditions as JSON values. A condition whose status has not changed keeps its
// transition time.
func NewConditions(before map[string]any, generation int64, now time.Time, set ...metav1.Condition) []any {
	kept := slices.DeleteFunc(conditionsOf(before), func(old metav1.Condition) bool { return meta.FindStatusCondition(set, old.Type) == nil })
	return merged(kept, generation, now, set)
}

// withConditions returns a status with some conditions changed, and everything else as it is.
func withConditions(before map[string]any, generation int64, now time.Time, set ...metav1.Condition) map[string]any {
	out := map[string]any{}
	maps.Copy(out, before)
	out["conditions"] = merged(conditionsOf(before), generation, now, set)
	return out
}

func merged(all []metav1.Condition, generation int64, now time.Time, set []metav1.Condition) []any {
	// The API server refuses the whole status for a condition without a time, as other frameworks
	// write it, and for two conditions of one type, which it may have stored itself before the
	// schema forbade that. The first one counts: meta.FindStatusCondition returns it.
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(c metav1.Condition) bool {
		unusable := c.LastTransitionTime.IsZero() || seen[c.Type]
		seen[c.Type] = seen[c.Type] || !unusable
		return unusable
	})
	for _, c := range set {
		c.Message = Shorten(c.Message, MaxMessage)
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		meta.SetStatusCondition(&all, c)
	}
	slices.SortStableFunc(all, func(a, b metav1.Condition) int {
		return slices.Index(Conditions, a.Type) - slices.Index(Conditions, b.Type)
	})
	out := make([]any, len(all))
	for i := range all {
		out[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&all[i]) // a condition has plain fields
	}
	return out
}
