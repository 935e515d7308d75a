package status

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// maxOutlined is the length up to which a text is kept in an outline. None that the engine writes there is longer.
const maxOutlined = 512

// outlinedConditions are those that an outline has.
var outlinedConditions = []string{ConditionReady, ConditionStalled, ConditionPackageBroken}

// Outline returns the part of a status that a cache keeps of a large resource: whether there is an inventory and whether
// SaysNotServed is true of it, for events; the package that has reconciled it and what came of that, for canaries; and which kind a Package serves, for claims.
func Outline(s map[string]any) map[string]any {
	out := map[string]any{}
	if _, has := s["inventory"]; has {
		out["inventory"] = []any{}
	}
	for _, field := range []string{"group", "kind"} {
		keepText(out, s, field)
	}
	if digest, _, _ := unstructured.NestedString(s, "package", "digest"); digest != "" && len(digest) <= maxOutlined {
		out["package"] = map[string]any{"digest": digest}
	}
	var conditions []any
	for _, kind := range outlinedConditions {
		if c := findCondition(s, kind); c != nil {
			kept := map[string]any{}
			for _, field := range []string{"type", "status", "reason", "lastTransitionTime"} {
				keepText(kept, c, field)
			}
			conditions = append(conditions, kept)
		}
	}
	if len(conditions) > 0 {
		out["conditions"] = conditions
	}
	return out
}

// findCondition returns the condition of a type as it is stored, or nil.
func findCondition(s map[string]any, kind string) map[string]any {
	all, _ := s["conditions"].([]any)
	for _, item := range all {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}

// keepText copies a field that is a text of a bounded length.
func keepText(into, from map[string]any, field string) {
	if text, is := from[field].(string); is && len(text) <= maxOutlined {
		into[field] = text
	}
}
