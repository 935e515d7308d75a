package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/explain"
	"sigs.k8s.io/yaml"
)

// The formats of manifests.
const (
	formatYAML = "yaml"
	formatJSON = "json"
)

// A manifest is an object to print.
type manifest struct {
	// comment says where it comes from; YAML shows it.
	comment string
	object  map[string]any
}

// printManifests prints objects as YAML documents, or as one List in JSON.
func printManifests(w io.Writer, format string, manifests []manifest) error {
	if format == formatJSON {
		items := make([]map[string]any, len(manifests))
		for i, m := range manifests {
			items[i] = m.object
		}
		return printJSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	for i, m := range manifests {
		text, err := yamlOf(m.object)
		if err != nil {
			return err
		}
		if m.comment != "" {
			text = "# " + escapeNewlines(m.comment) + "\n" + text
		}
		if i > 0 {
			text = "---\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printAs prints a value as JSON, or the text that it has for people.
func (s streams) printAs(format string, value any, text func(explain.Palette) string) error {
	if format == formatJSON {
		return printJSON(s.out, value)
	}
	_, err := io.WriteString(s.out, text(newPalette(s.out)))
	return err
}

// firstKeys are the fields that begin a manifest, in their usual order. The others follow in
// alphabetical order.
var firstKeys = []string{"apiVersion", "kind", "metadata", "spec"}

// yamlOf returns an object as a YAML document.
func yamlOf(object map[string]any) (string, error) {
	keys := slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(keyRank(a)-keyRank(b), strings.Compare(a, b))
	})
	var b strings.Builder
	for _, k := range keys {
		text, err := yaml.Marshal(map[string]any{k: object[k]})
		if err != nil || strings.ContainsFunc(string(text), actsOnTerminal) {
			text, err = fieldAsJSON(k, object[k]) // the YAML library refuses some characters
		}
		if err != nil {
			return "", fmt.Errorf("printing %s: %w", k, err)
		}
		b.Write(text)
	}
	return b.String(), nil
}

// fieldAsJSON returns a field of a YAML document in JSON, which is valid YAML. JSON can escape the
// characters that a terminal acts upon in keys as well as in values.
func fieldAsJSON(key string, value any) ([]byte, error) {
	var b bytes.Buffer
	if err := printJSON(&b, map[string]any{key: value}); err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(strings.TrimPrefix(b.String(), "{\n"), "\n}\n")
	return []byte(strings.ReplaceAll(escapeControls(text), "\n  ", "\n")[len("  "):] + "\n"), nil
}

// keyRank returns the place of a key among the firstKeys, or one after all of them.
func keyRank(key string) int {
	if i := slices.Index(firstKeys, key); i >= 0 {
		return i
	}
	return len(firstKeys)
}
