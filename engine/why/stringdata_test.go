package why_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/render"
	"operetta.dev/engine/why"
	"operetta.dev/test/inline"
)

// secretOf is a package with a Secret; the lines are counted behind the header.
const secretOf = header + `components: c: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "m"}
components: c: objects: s: stringData: token: "canary-\(cr.spec.mode)"
components: c: objects: s: data: raw: "Y2FuYXJ5"
components: c: objects: s: data: token: "b3ZlcnJpZGRlbg=="
`

// liveSecret is the Secret as an API server stores it.
func liveSecret(token string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": "m", "namespace": "default", "resourceVersion": "1", "uid": "u",
			"managedFields": []any{map[string]any{
				"manager": "operetta", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{"f:token": map[string]any{}, "f:raw": map[string]any{}}},
			}},
		},
		"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token)), "raw": "Y2FuYXJ5"},
	}
}

func TestTheDataOfASecretComesFromItsStringData(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, secretOf)
	for name, row := range map[string]struct {
		reason string
		path   string
		live   map[string]any
		// lines are those behind the header that the field itself is written in.
		lines   []int
		sources []string
		differs bool
		noted   bool
	}{
		"a key of the text":        {"the API server stores it in data", ".data.token", liveSecret("canary-b"), []int{2}, []string{"cr.spec.mode"}, false, true},
		"asked as it is written":   {"the cluster has it by the other name", ".stringData.token", liveSecret("canary-b"), []int{2}, []string{"cr.spec.mode"}, false, false},
		"another value":            {"somebody has changed it", ".data.token", liveSecret("forged"), []int{2}, []string{"cr.spec.mode"}, true, true},
		"a key of the data":        {"it is written as it is stored", ".data.raw", liveSecret("canary-b"), []int{3}, nil, false, false},
		"all of it":                {"it is written by both names", ".data", liveSecret("canary-b"), []int{2, 3, 4}, []string{"cr.spec.mode"}, false, true},
		"without a cluster":        {"the package alone tells", ".data.token", nil, []int{2}, []string{"cr.spec.mode"}, false, true},
		"all of another value":     {"one key differs", ".data", liveSecret("forged"), []int{2, 3, 4}, []string{"cr.spec.mode"}, true, true},
		"in the form with a quote": {"it is the same path", `.data["token"]`, liveSecret("canary-b"), []int{2}, []string{"cr.spec.mode"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := render.Input{CR: site(map[string]any{})}
			if row.live != nil {
				in.Manifests = []map[string]any{row.live}
			}
			a, err := why.Ask(t.Context(), p, in, why.Question{Object: "c/s", Path: row.path})
			if err != nil {
				t.Fatalf("%s: %v", row.reason, err)
			}
			var lines []int
			for _, l := range a.Lines {
				if behind := l.Line - strings.Count(header, "\n"); behind > 1 {
					lines = append(lines, behind)
				}
			}
			slices.Sort(lines)
			var sources []string
			for _, s := range a.Sources {
				sources = append(sources, s.Path)
			}
			if diff := cmp.Diff(row.lines, lines); diff != "" {
				t.Errorf("lines, %s (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.sources, sources); diff != "" {
				t.Errorf("sources, %s (-want +got):\n%s", row.reason, diff)
			}
			if !a.Written || (a.Live != nil) != (row.live != nil) || a.Live != nil && (!a.Live.Exists || a.Live.Differs != row.differs || len(a.Live.Owners) != 1) {
				t.Errorf("%s: written %t, live %+v", row.reason, a.Written, a.Live)
			}
			text := a.Text(explain.Plain, time.Now())
			if noted := strings.Contains(text, "stringData in data"); noted != row.noted {
				t.Errorf("%s: noted is %t:\n%s", row.reason, noted, text)
			}
			encoded, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{"canary", "Y2FuYXJ5", "forged", base64.StdEncoding.EncodeToString([]byte("canary-b")), "b3ZlcnJ"} {
				if strings.Contains(text+string(encoded), hidden) {
					t.Errorf("it shows %s:\n%s\n%s", hidden, text, encoded)
				}
			}
		})
	}
}

func TestAMisspelledKeyOfASecretNamesTheKeysOfItsText(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+`components: c: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "m", stringData: token: "x"}`+"\n")
	_, err := why.Ask(t.Context(), p, render.Input{CR: site(map[string]any{})}, why.Question{Object: "c/s", Path: ".data.tokn"})
	if err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("the error is %v", err)
	}
}

func TestASecretThatCannotBeRenderedYetHasNoValue(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+`components: d: objects: x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "x"}
components: c: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: token: live.d.x.data.word}
`)
	for _, path := range []string{".", ".kind", ".data.token"} {
		a, err := why.Ask(t.Context(), p, render.Input{CR: site(map[string]any{})}, why.Question{Object: "c/s", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if a.Value != nil || !slices.ContainsFunc(a.Notes, func(note string) bool { return strings.Contains(note, "live.d is not there yet") }) {
			t.Errorf("%s is %v, with the notes %q", path, a.Value, a.Notes)
		}
	}
}
