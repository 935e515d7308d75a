package patch

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxSize is how large the spec of a Patch may be, as JSON, and how much of a status is
// looked at. A Patch is a few lines; many large ones would fill the memory of the operator.
const maxSize = 64 << 10

// tooLarge is where Trim notes that a Patch had a larger spec. The API server prunes it from
// what others write.
const tooLarge = "tooLarge"

// sizeFault is why a Patch that is too large is not applied.
func sizeFault() string { return fmt.Sprintf("its spec is larger than %d bytes", maxSize) }

// Trim takes out of a Patch what the engine never reads, so that a cache of them holds
// little, whatever somebody has written.
func Trim(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	u.SetLabels(nil)
	if text, err := json.Marshal(u.Object["status"]); err != nil || len(text) > maxSize {
		delete(u.Object, "status")
	}
	if text, err := json.Marshal(u.Object["spec"]); err == nil && len(text) <= maxSize {
		return
	}
	spec := mapOf(u.Object["spec"])
	u.Object["spec"] = map[string]any{"target": spec["target"], "order": spec["order"]}
	u.Object[tooLarge] = true
}
