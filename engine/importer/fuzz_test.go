package importer_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"operetta.dev/engine/importer"
)

// FuzzImportKeepsEveryText imports an object with a text, also with a release whose name may be in it. Import errors if the
// package renders another one.
func FuzzImportKeepsEveryText(f *testing.F) {
	for _, text := range []string{"", "plain", "two\nlines\n", "\t\ttabs\n\tand\n", `\(cr.x)`, `"""`, "'''\n\"\"\"\n", "#", "rel-rel.rel", "a\r\nb", "\u00e9\U0001F600\u0000", "\\", "rel", "{rel}\n", "${x}", "_|_"} {
		f.Add(text, "rel")
		f.Add(text, "")
	}
	f.Fuzz(func(t *testing.T, text, release string) {
		if !utf8.ValidString(text) || !releaseName(release) {
			return
		}
		var o map[string]any
		data, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "annotations": map[string]any{"example.com/text": text}},
			"data": map[string]any{"text": text},
		})
		if err == nil {
			err = json.Unmarshal(data, &o)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = importer.Import(t.Context(), []importer.Object{{Manifest: o, At: "a.yaml:1"}}, importer.Options{Package: packageOf("shop"), Release: release})
		if err != nil {
			t.Errorf("%q with release %q: %v", text, release, err)
		}
	})
}

// releaseName reports whether a name can be that of a release, and so of a custom resource.
func releaseName(name string) bool {
	for _, r := range name {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	return len(name) < 50
}
