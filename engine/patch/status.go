package patch

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/status"
)

// ConditionApplied is the type of the condition of a Patch.
const ConditionApplied = "Applied"

// Whole returns the report of a patch that could not be applied at all.
func Whole(p Patch, reason Reason, message string) Report {
	return Report{Patch: p, Unmatched: []Miss{{Reason: reason, Message: message}}}
}

// Status returns the status of a Patch, given the one before and the time of a
// condition that changes. It is equal to the one before unless there is news.
func Status(before map[string]any, r Report, now time.Time) map[string]any {
	reason, message := r.summary()
	applies := metav1.Condition{Type: ConditionApplied, Status: metav1.ConditionTrue, Reason: string(reason), Message: message}
	if reason != Applied {
		applies.Status = metav1.ConditionFalse
	}
	out := map[string]any{
		"observedGeneration": r.Patch.Generation,
		"conditions":         status.NewConditions(before, r.Patch.Generation, now, applies),
	}
	var applied, unmatched []any
	for _, p := range r.Applied {
		applied = append(applied, map[string]any{"address": p.Address, "object": p.Object})
	}
	for _, m := range r.Unmatched {
		if m.Address != "" {
			unmatched = append(unmatched, map[string]any{"address": m.Address, "reason": string(m.Reason), "message": status.Shorten(m.Message, maxMiss)})
		}
	}
	if len(applied) > 0 {
		out["applied"] = applied
	}
	if len(unmatched) > 0 {
		out["unmatched"] = unmatched
	}
	return out
}

// Same reports whether two statuses say the same.
func Same(before, after map[string]any) bool { return status.Same(before, after) }

// Observed returns the generation that a status is about, or 0.
func Observed(before map[string]any) int64 {
	generation, _ := before["observedGeneration"].(int64)
	return generation
}

// ReasonOf returns the reason that a status has, or "".
func ReasonOf(of map[string]any) Reason {
	if c := status.Condition(of, ConditionApplied); c != nil {
		return Reason(c.Reason)
	}
	return ""
}

// summary returns what came of the patch as a whole: what a person has to look at
// rather than what passes by itself.
func (r Report) summary() (Reason, string) {
	if len(r.Unmatched) == 0 {
		return Applied, count(len(r.Applied))
	}
	reason := r.Unmatched[0].Reason
	var parts []string
	for _, m := range r.Unmatched {
		if reason == Pending {
			reason = m.Reason
		}
		if m.Address == "" {
			parts = append(parts, m.Message)
			continue
		}
		parts = append(parts, m.Address+": "+m.Message)
	}
	text := status.List(parts)
	if len(r.Applied) > 0 {
		text += "; otherwise " + count(len(r.Applied))
	}
	return reason, status.Shorten(text, status.MaxMessage)
}

// maxMiss is how much a patch says about each of its changes: there may be many.
const maxMiss = 512

func count(objects int) string {
	if objects == 1 {
		return "applied to 1 object"
	}
	return fmt.Sprintf("applied to %d objects", objects)
}
