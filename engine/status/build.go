package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// PackageFault says what is wrong with the present files of the package, when Digest
	// is that of an earlier version; "" is nothing.
	PackageFault string
	// Version is the API version that was reconciled.
	Version string
	// Inventory is the resource's inventory, as JSON values.
	Inventory []any
	// Hooks are the hooks that have run, as JSON values.
	Hooks []any
	// HandledAt is the value of the annotation that asked for this reconcile, or "".
	HandledAt string
}

// EngineFields are the fields of status that the engine writes. An author's own
// field of that name is not written.
var EngineFields = []string{
	"observedGeneration", "phase", "conditions", "componentsReady", "components", "package", "versions", "inventory",
	"lastHandledReconcileAt", "hooks", "patches",
}

// Build returns the status of a custom resource. It is deterministic, and equal
// to Before unless something of substance changed.
func Build(in Input) map[string]any {
	c := in.Completion
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(c.Own)) {
		if !slices.Contains(EngineFields, k) {
			out[k] = c.Own[k]
		}
	}
	if c.Own == nil {
		keep(out, in.Before, func(field string) bool { return !slices.Contains(EngineFields, field) })
	}
	if list := components(in, c.Components); len(list) > 0 {
		out["components"] = list
	}
	out["componentsReady"] = c.tally()
	if !c.Fault.IsZero() && len(c.Components) == 0 {
		// Nobody has looked at the objects: they are as they were.
		keep(out, in.Before, func(field string) bool {
			return slices.Contains([]string{"components", "componentsReady", "patches"}, field)
		})
		for _, was := range previousComponents(in.Before, in.Generation) {
			in.Completion.Components = append(in.Completion.Components, was.Component)
		}
	}
	phase := next(PhaseOf(in.Before), in.Completion)
	out["observedGeneration"] = in.Generation
	out["phase"] = string(phase)
	out["conditions"] = conditions(in, phase)
	out["package"] = map[string]any{"name": in.Package, "digest": in.Digest}
	out["versions"] = versions(in)
	out["inventory"] = append([]any{}, in.Inventory...) // one that is missing was lost
	if len(in.Hooks) > 0 {
		out["hooks"] = in.Hooks
	}
	if len(c.Patches) > 0 {
		out["patches"] = texts(c.Patches)
	}
	if in.HandledAt != "" {
		out["lastHandledReconcileAt"] = in.HandledAt
	}
	return out
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// keep takes over the fields of a status that were not looked at now.
func keep(out, before map[string]any, which func(field string) bool) {
	for k, v := range before {
		if which(k) {
			out[k] = v
		}
	}
}

// versions returns the desired version, and the reconciled one: what was last
// fully verified.
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
	return NewConditions(in.Before, in.Generation, in.Now, all...)
}

// Paused returns a status with the condition that a person has paused the resource.
// Everything else stays as it was last observed.
func Paused(before map[string]any, generation int64, now time.Time) map[string]any {
	return withConditions(before, generation, now, metav1.Condition{
		Type: ConditionPaused, Status: metav1.ConditionTrue, Reason: ConditionPaused,
		Message: "nothing is applied until the annotation operetta.dev/paused is removed; deletion still works",
	})
}

// notStalled is the reason of the condition Stalled while nobody has to act.
const notStalled = "NotStalled"

func ongoing(s metav1.ConditionStatus, message string) string {
	if s == metav1.ConditionTrue {
		return message
	}
	return ""
}

// Same reports whether two statuses say the same.
func Same(a, b map[string]any) bool {
	return equality.Semantic.DeepEqual(normal(a), normal(b))
}

// normal gives numbers one type, whether they come from JSON or from Go.
func normal(m map[string]any) map[string]any {
	b, err := json.Marshal(m)
	if err != nil {
		return m
	}
	out := map[string]any{}
	if json.Unmarshal(b, &out) != nil {
		return m
	}
	return out
}

// Significance says how soon a change of status has to be written.
type Significance string

// The weights.
const (
	// NoChange: there is nothing to write.
	NoChange Significance = "None"
	// ProgressOnly: only messages and the author's numbers changed. Such a change
	// may be held back for a moment: pods become ready one by one, and each would
	// cost a write.
	ProgressOnly Significance = "Progress"
	// StateOnly: the status of a condition, or a component that is wrong or left out,
	// changed as well.
	StateOnly Significance = "State"
	// Substance: what the engine goes by changed, such as the generation or the
	// inventory.
	Substance Significance = "Substance"
)

// CompareSignificance compares a new status with the one before it.
func CompareSignificance(before, after map[string]any) Significance {
	if Same(before, after) {
		return NoChange
	}
	switch {
	case !Same(substance(before), substance(after)):
		return Substance
	case !Same(state(before), state(after)):
		return StateOnly
	}
	return ProgressOnly
}

// substance returns what of a status must never be lost.
func substance(s map[string]any) map[string]any {
	out := map[string]any{}
	for _, k := range []string{"observedGeneration", "package", "versions", "lastHandledReconcileAt", "hooks", "patches"} {
		out[k] = s[k]
	}
	// The inventory was stored before the first write; what a rollout adds to it
	// is digests, and what it takes away may be looked for again. What an object that
	// ends was made with, and how it has ended, cannot be seen any more once it has
	// removed itself.
	out["inventory"], out["ended"] = len(list(s, "inventory")), ended(s)
	return out
}

// state returns what of a status people and programs wait for.
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

// ended returns with which content the objects of an inventory were made that end, and
// how they have ended.
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
