package ownership

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/object"
)

// FoldStringData moves the plain text of a Secret into its data, as the API server does. Otherwise
// the engine would own stringData and not data: it would neither notice a changed value nor
// delete a removed key.
func FoldStringData(u *unstructured.Unstructured) {
	text, _ := u.Object["stringData"].(map[string]any)
	if !object.IsSecret(u.GroupVersionKind().GroupKind()) || len(text) == 0 {
		return
	}
	data := map[string]any{}
	if given, ok := u.Object["data"].(map[string]any); ok {
		data = maps.Clone(given)
	}
	for key, value := range text {
		plain, ok := value.(string)
		if !ok {
			return // the API server says what is wrong with it
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(plain))
	}
	delete(u.Object, "stringData")
	u.Object["data"] = data
}
