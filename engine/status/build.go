package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/object"
)

// Input is what a status is built from.
type Input struct {
	Completion Completion
	// Before is the status that the resource has now; it may be nil.
	Before map[string]any
	// Generation is the generation of the spec that was reconciled.
	Generation int64
	// Now is the time of a condition that changes.
	Now time.Time
	// Package and Digest identify the package.
	Package, Digest string
	// PackageFault says what is wrong with the present files of the package while an earlier
	// version serves, or "".
	PackageFault string
	// PatchesUnread says that the operator may not read the Patches of the resource, and why, or is "".
	PatchesUnread string
	// Version is the API version that was reconciled.
	Version string
	// Inventory is the resource's inventory, as JSON values.
	Inventory []any
	// Hooks are the hooks that have run, as JSON values.
	Hooks []any
	// HandledAt is the value of the annotation that requested this reconcile, or "".
	HandledAt string
}

// EngineFields are the fields of a status that the engine writes. An author's field of such a name is
// ignored.
var EngineFields = []string{
	"observedGeneration", "phase", "conditions", "componentsReady", "components", "package", "versions", "inventory",
	"lastHandledReconcileAt", "hooks", "patches",
}

// Build returns the status of a custom resource. It is deterministic, and equal to Before unless
// something changed.
func Build(in Input) map[string]any {
	c := in.Completion
	out := map[string]any{}
	own := c.Own
	if own == nil {
		own = in.Before // they were not evaluated
	}
	keep(out, own, func(field string) bool { return !slices.Contains(EngineFields, field) })
	if list := components(in, c.Components); len(list) > 0 {
		out["components"] = list
	}
	out["componentsReady"] = c.tally()
	if !c.Fault.IsZero() && len(c.Components) == 0 {
		// The rollout did not get as far as the components: they are as they were.
		keep(out, in.Before, func(field string) bool {
			return slices.Contains([]string{"components", "componentsReady", "patches"}, field)
		})
		for _, was := range previousComponents(in.Before, in.Generation) {
			in.Completion.Components = append(in.Completion.Components, was.component())
		}
	}
	phase := next(PhaseOf(in.Before), in.Completion)
	out["observedGeneration"] = in.Generation
	out["phase"] = string(phase)
	out["conditions"] = conditions(in, phase)
	out["package"] = map[string]any{"name": in.Package, "digest": in.Digest}
	out["versions"] = versions(in)
	out["inventory"] = append([]any{}, in.Inventory...) // a missing one would count as lost
	if len(in.Hooks) > 0 {
		out["hooks"] = in.Hooks
	}
	if len(c.Patches) > 0 {
		out["patches"] = object.Texts(c.Patches)
	}
	if in.HandledAt != "" {
		out["lastHandledReconcileAt"] = in.HandledAt
	}
	return out
}

// keep copies some fields of a status.
func keep(out, before map[string]any, which func(field string) bool) {
	for k, v := range before {
		if which(k) {
			out[k] = v
		}
	}
}

// versions returns the desired version, and the version that was last fully verified.
func versions(in Input) map[string]any {
	out := map[string]any{"desired": in.Version}
	was, _ := in.Before["versions"].(map[string]any)
	if reconciled, ok := was["reconciled"]; ok {
		out["reconciled"] = reconciled
	}
	if in.Completion.Ready() {
		out["reconciled"] = in.Version
	}
	return out
}

// conditions returns the conditions, in a fixed order.
func conditions(in Input, phase Phase) []any {
	reason, message := in.Completion.summary()
	ready, reconciling, stalled := metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse
	stalledReason, stalledMessage := Reason(notStalled), ""
	switch phase {
	case PhaseReady:
		ready, reconciling = metav1.ConditionTrue, metav1.ConditionFalse
	case PhaseFailed:
		reconciling, stalled = metav1.ConditionFalse, metav1.ConditionTrue
		stalledReason, stalledMessage = in.Completion.stalled()
	case PhaseDeleting:
		if in.Completion.needsPerson() {
			reconciling, stalled = metav1.ConditionFalse, metav1.ConditionTrue
			stalledReason, stalledMessage = in.Completion.stalled()
		}
		if reason == ReasonReady || reason == ReasonPruning {
			reason = ReasonDeleting
		}
	case PhaseCreated, PhaseReconciling, PhaseWaiting, PhaseScaling:
	}
	all := []metav1.Condition{
		{Type: ConditionReady, Status: ready, Reason: string(reason), Message: message},
		{Type: ConditionReconciling, Status: reconciling, Reason: string(phase), Message: ongoing(reconciling, message)},
		{Type: ConditionStalled, Status: stalled, Reason: string(stalledReason), Message: stalledMessage},
	}
	if in.PackageFault != "" {
		all = append(all, outdated(in))
	}
	if in.PatchesUnread != "" {
		all = append(all, metav1.Condition{
			Type: ConditionPatchesUnread, Status: metav1.ConditionTrue, Reason: patchesForbidden,
			Message: "Patches of this resource do not count: " + in.PatchesUnread,
		})
	}
	return NewConditions(in.Before, in.Generation, in.Now, all...)
}

// Paused returns a status with the condition that a person has paused the resource. Everything else
// stays as it is.
func Paused(before map[string]any, generation int64, now time.Time) map[string]any {
	return withConditions(before, generation, now, metav1.Condition{
		Type: ConditionPaused, Status: metav1.ConditionTrue, Reason: ConditionPaused,
		Message: "nothing is applied until the annotation operetta.dev/paused is removed; deletion still works",
	})
}

// patchesForbidden is the reason of the condition PatchesUnread.
const patchesForbidden = "Forbidden"

// notStalled is the reason of the condition Stalled while it is false.
const notStalled = "NotStalled"

func ongoing(s metav1.ConditionStatus, message string) string {
	if s == metav1.ConditionTrue {
		return message
	}
	return ""
}

// Equal reports whether two statuses are equal, whatever the Go types of their numbers.
func Equal(a, b map[string]any) bool { return object.EqualFields(a, b) }

// Significance says how soon a change of the status has to be written.
type Significance string

// The significances, least first.
const (
	// NoChange: there is nothing to write.
	NoChange Significance = "None"
	// ProgressOnly: only messages and the author's fields changed. Such a change may be held
	// back: pods become ready one by one, and each would cost a write.
	ProgressOnly Significance = "Progress"
	// StateOnly: a condition became true or false, or a component failed or was excluded.
	StateOnly Significance = "State"
	// Substance: the engine's state changed, such as the generation or the inventory.
	Substance Significance = "Substance"
)

// CompareSignificance compares a new status with the one before it.
func CompareSignificance(before, after map[string]any) Significance {
	if Equal(before, after) {
		return NoChange
	}
	switch {
	case !Equal(substance(before), substance(after)):
		return Substance
	case !Equal(state(before), state(after)):
		return StateOnly
	}
	return ProgressOnly
}

// substance returns the part of a status that must never be lost.
func substance(s map[string]any) map[string]any {
	out := map[string]any{}
	for _, k := range []string{"observedGeneration", "package", "versions", "lastHandledReconcileAt", "hooks", "patches"} {
		out[k] = s[k]
	}
	// The inventory was stored before the first write. A rollout only adds digests, and removes
	// entries that it could look up again. The content of an object that finishes, and how it
	// finished, cannot be read again after the object has deleted itself.
	out["inventory"], out["ended"] = len(list(s, "inventory")), ended(s)
	return out
}

// state returns the part of a status that people and programs wait for.
func state(s map[string]any) map[string]any {
	out := map[string]any{}
	for _, c := range conditionsOf(s) {
		out["condition "+c.Type] = string(c.Status)
	}
	failed := map[string]any{}
	for _, c := range list(s, "components") {
		m, _ := c.(map[string]any)
		switch state, _ := m["state"].(string); State(state) {
		case Failed, Retrying, Held, Excluded:
			failed[fmt.Sprint(m["name"])] = state
		case Verified, Applied, Waiting, Deleting:
		}
	}
	out["failed"] = failed
	return out
}

// ended returns the content of the objects in an inventory that finish, and how they finished.
func ended(s map[string]any) []any {
	out := []any{}
	for _, group := range list(s, "inventory") {
		g, _ := group.(map[string]any)
		for _, object := range list(g, "objects") {
			if o, _ := object.(map[string]any); o["content"] != nil {
				out = append(out, []any{g["component"], o["object"], o["ended"], o["content"]})
			}
		}
	}
	return out
}

func list(s map[string]any, field string) []any {
	l, _ := s[field].([]any)
	return l
}

// PhaseOf returns the phase in a status.
func PhaseOf(s map[string]any) Phase {
	p, _ := s["phase"].(string)
	return Phase(p)
}
