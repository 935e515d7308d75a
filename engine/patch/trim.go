package patch

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxSpecSize bounds the spec and the status of a Patch, in bytes of JSON. A Patch is a few
// lines; many large ones would fill the memory of the operator.
const maxSpecSize = 64 << 10

// tooLargeField is the field in which Trim records that the spec of a Patch was too large. A
// user cannot set it: it is not in the schema, so the API server prunes it.
const tooLargeField = "tooLarge"

// specTooLarge returns why a Patch that is too large is not applied.
func specTooLarge() string { return fmt.Sprintf("its spec is larger than %d bytes", maxSpecSize) }

// Trim removes from a Patch what the engine never reads, so that a cache of Patches stays
// small, whatever users write.
func Trim(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	u.SetLabels(nil)
	if text, err := json.Marshal(u.Object["status"]); err != nil || len(text) > maxSpecSize {
		delete(u.Object, "status")
	}
	if text, err := json.Marshal(u.Object["spec"]); err == nil && len(text) <= maxSpecSize {
		return
	}
	spec := mapOf(u.Object["spec"])
	u.Object["spec"] = map[string]any{"target": spec["target"], "order": spec["order"]}
	u.Object[tooLargeField] = true
}
