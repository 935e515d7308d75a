package status

import "slices"

// EngineOwned returns a status without what others have written: conditions of other types, and
// fields that are neither the engine's nor owned by it for the author. The engine would rewrite
// the status forever if it compared those, and keep them forever if it took them over.
func EngineOwned(s map[string]any, owned func(field string) bool) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		if slices.Contains(EngineFields, k) || owned(k) {
			out[k] = v
		}
	}
	if all, ok := s["conditions"].([]any); ok {
		out["conditions"] = slices.DeleteFunc(slices.Clone(all), func(c any) bool {
			m, _ := c.(map[string]any)
			name, _ := m["type"].(string)
			return !slices.Contains(Conditions, name)
		})
	}
	return out
}
