package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var printed = []manifest{
	{comment: "components.a.objects.b", object: map[string]any{
		"data": map[string]any{"z": "1", "a": "<&>"}, "kind": "K", "spec": nil, "apiVersion": "v1",
		"metadata": map[string]any{"name": "web"}, "Aside": true,
	}},
	{object: map[string]any{"kind": "L"}},
}

func TestManifestsBeginWithWhatTheyAre(t *testing.T) {
	var got strings.Builder
	if err := printManifests(&got, formatYAML, printed); err != nil {
		t.Fatal(err)
	}
	want := `# components.a.objects.b
apiVersion: v1
kind: K
metadata:
  name: web
spec: null
Aside: true
data:
  a: <&>
  z: "1"
---
kind: L
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("yaml (-want +got):\n%s", diff)
	}
}

func TestJSONIsOneList(t *testing.T) {
	for name, c := range map[string]struct {
		manifests []manifest
		want      string
	}{
		"Some": {printed[1:], "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    {\n      \"kind\": \"L\"\n    }\n  ],\n  \"kind\": \"List\"\n}\n"},
		"None": {nil, "{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\"\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := printManifests(&got, formatJSON, c.manifests); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("json (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClosedPipeIsAnError(t *testing.T) {
	for _, format := range []string{formatYAML, formatJSON} {
		if err := printManifests(closedPipe{}, format, printed); err == nil {
			t.Errorf("%s: no error, want one", format)
		}
	}
}

type closedPipe struct{}

// Write fails as a pipe does that nobody reads.
func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
