package plan

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/redact"
)

// standInPrefix begins what stands in a dump for a value of a Secret.
const standInPrefix = "operetta-dump-"

// standsIn reports whether a text has something in place of a value of a Secret.
func standsIn(text string) bool {
	if strings.Contains(text, standInPrefix) {
		return true
	}
	plain, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.Contains(string(plain), standInPrefix)
}

// knownAfter returns the state of an object after a change with the values before it where nobody knows
// whether they differ: a dump has a stand-in for the value before, and the value after it was not made of one. Empty
// fields that it did not have are left out, as an API server stores none.
func knownAfter(before, after *unstructured.Unstructured) *unstructured.Unstructured {
	if before == nil || after == nil {
		return after
	}
	out := &unstructured.Unstructured{}
	out.Object, _ = known(before.Object, after.Object).(map[string]any)
	return out
}

// known is knownAfter for a value.
func known(before, after any) any {
	switch b := before.(type) {
	case string:
		a, isText := after.(string)
		if strings.Contains(b, redact.Mask) || standsIn(b) && isText && !standsIn(a) {
			return b
		}
	case map[string]any:
		a, isMap := after.(map[string]any)
		if !isMap {
			return after
		}
		out := maps.Clone(a)
		for k, v := range a {
			if _, had := b[k]; !had && isEmpty(v) {
				delete(out, k)
				continue
			}
			out[k] = known(b[k], v)
		}
		return out
	case []any:
		a, isList := after.([]any)
		if !isList || len(a) != len(b) {
			return after
		}
		out := slices.Clone(a)
		for i := range a {
			out[i] = known(b[i], a[i])
		}
		return out
	}
	return after
}

// isEmpty reports whether a value is a map or a list with nothing in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
