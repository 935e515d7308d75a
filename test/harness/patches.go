package harness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PatchRef returns a Patch with only its identity.
func (s *Env) PatchRef(name string) *unstructured.Unstructured {
	return Object("operetta.dev/v1alpha1", "Patch", s.Namespace, name)
}

// NewPatch returns a Patch of a WebApp.
func (s *Env) NewPatch(name, target string, order int64, changes ...any) *unstructured.Unstructured {
	u := s.PatchRef(name)
	u.Object["spec"] = map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "WebApp", "name": target},
		"order":   order,
		"patches": changes,
	}
	return u
}

// StrategicMerge returns a change of a Patch by strategic merge.
func StrategicMerge(address string, merge map[string]any) map[string]any {
	return map[string]any{"address": address, "strategicMerge": merge}
}

// JSONOperations returns a change of a Patch by JSON patch (RFC 6902).
func JSONOperations(address string, operations ...any) map[string]any {
	return map[string]any{"address": address, "json6902": operations}
}

// ExpectPatch waits until the status of a Patch has a reason for its current generation, and returns
// the Patch.
func (s *Env) ExpectPatch(name, reason string, parts ...string) *unstructured.Unstructured {
	s.T.Helper()
	return s.ExpectObject(s.PatchRef(name), "to be "+reason, func(u *unstructured.Unstructured) error {
		c := Condition(u, "Applied")
		message, _ := c["message"].(string)
		if c["reason"] == reason && c["observedGeneration"] == u.GetGeneration() && ContainsAll(message, parts) &&
			(c["status"] == "True") == (reason == "Applied") {
			return nil
		}
		return fmt.Errorf("its status is %s; wanted %s with %q", Encode(s.T, u.Object["status"]), reason, parts)
	})
}
