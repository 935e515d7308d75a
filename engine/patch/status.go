package patch

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/status"
)

// ConditionApplied is the type of the condition of a Patch.
const ConditionApplied = "Applied"

// NotApplied returns the report of a patch of which nothing was applied.
func NotApplied(p Patch, reason Reason, message string) Report {
	return Report{Patch: p, Unmatched: []UnmatchedChange{{Reason: reason, Message: message}}}
}

// Status returns the status of a Patch. before is the previous status, and now the transition
// time if the condition changes. The result equals before if nothing has changed.
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
			unmatched = append(unmatched, map[string]any{"address": m.Address, "reason": string(m.Reason), "message": status.Shorten(m.Message, maxUnmatchedMessage)})
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

// ObservedGeneration returns the observed generation of a status, or 0.
func ObservedGeneration(before map[string]any) int64 {
	generation, _ := before["observedGeneration"].(int64)
	return generation
}

// ReasonOf returns the reason of the condition Applied of a status, or "".
func ReasonOf(of map[string]any) Reason {
	if c := status.Condition(of, ConditionApplied); c != nil {
		return Reason(c.Reason)
	}
	return ""
}

// summary returns the reason and message for the whole patch. A reason that needs a person
// takes precedence over Pending, which resolves by itself.
func (r Report) summary() (Reason, string) {
	if len(r.Unmatched) == 0 {
		return Applied, appliedMessage(len(r.Applied))
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
		text += "; otherwise " + appliedMessage(len(r.Applied))
	}
	return reason, status.Shorten(text, status.MaxMessage)
}

// maxUnmatchedMessage bounds the message about each change: a patch may have many changes.
const maxUnmatchedMessage = 512

func appliedMessage(objects int) string {
	if objects == 1 {
		return "applied to 1 object"
	}
	return fmt.Sprintf("applied to %d objects", objects)
}
