package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// walk replaces each value in a struct that is neither a struct nor a list by what a function returns for it and its path.
func walk(of map[string]any, at []string, replace func(at []string, value any) any) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		of[name] = walked(of[name], append(slices.Clip(at), name), replace)
	}
}

func walked(value any, at []string, replace func(at []string, value any) any) any {
	switch v := value.(type) {
	case map[string]any:
		walk(v, at, replace)
		return v
	case []any:
		for i := range v {
			v[i] = walked(v[i], append(slices.Clip(at), fmt.Sprintf("[%d]", i)), replace)
		}
		return v
	}
	return replace(at, value)
}

// isNamespaceReference reports whether an API server reads a namespace at a path: that of a subject of a binding, or of
// the service of a webhook.
func isNamespaceReference(at []string) bool {
	n := len(at)
	return n >= 2 && at[n-1] == "namespace" && (at[0] == "subjects" || at[n-2] == "service")
}

// mentions reports whether a text has a word.
func mentions(text, word string) bool {
	return regexp.MustCompile(`(^|[^a-zA-Z0-9-])` + regexp.QuoteMeta(word) + `($|[^a-zA-Z0-9-])`).MatchString(text)
}
