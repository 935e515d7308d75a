package ownership_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// A Job that counts as done although it is not, or was another one, is work that is never done.
func TestHowAnObjectHasFinishedIsKeptOnlyOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, content, digest string
		how                     ownership.FinishState
		want                    ownership.FinishState
		wantLast                string
	}{
		"it succeeded":             {"its work is done", "c", "d", ownership.Succeeded, ownership.Succeeded, `{"succeeded":1}`},
		"it failed":                {"it is not retried", "c", "d", ownership.Failed, ownership.Failed, `{"succeeded":1}`},
		"it has not finished":      {"what it says is not its last word", "c", "d", ownership.NotFinished, ownership.NotFinished, ""},
		"with another digest":      {"another manifest was applied", "c", "other", ownership.Succeeded, ownership.NotFinished, ""},
		"of a kind without an end": {"nobody knows what ran", "", "d", ownership.Succeeded, ownership.NotFinished, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "batch/v1", "kind": "Job",
				"metadata": map[string]any{"namespace": "default", "name": "migrate", "annotations": map[string]any{ownership.AppliedAnnotation: row.digest}},
				"status":   map[string]any{"succeeded": int64(1)},
			}}
			before := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{
				{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "migrate", Digest: "d", Content: row.content, Ended: ownership.Failed, Last: "{}"},
			}}}
			got := before.WithFinished("default", last, row.how)[0].Objects[0]
			if got.Ended != row.want || got.Last != row.wantLast {
				t.Errorf("%s: it ended as %q, with %q", row.reason, got.Ended, got.Last)
			}
			if kept := before[0].Objects[0]; kept.Ended != ownership.Failed || kept.Last != "{}" {
				t.Errorf("the inventory before was changed, and others still have it: %v", kept)
			}
		})
	}
}

func TestALongStatusOfAFinishedObjectIsNotKept(t *testing.T) {
	t.Parallel()
	const limit = 512
	for name, row := range map[string]struct {
		reason string
		length int
		want   bool
	}{
		"AsLongAsAllowed": {"it fits", limit, true},
		"OneByteLonger":   {"there may be many Jobs", limit + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const around = len(`{"phase":""}`)
			last := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "batch/v1", "kind": "Job",
				"metadata": map[string]any{"namespace": "default", "name": "migrate", "annotations": map[string]any{ownership.AppliedAnnotation: "d"}},
				"status":   map[string]any{"phase": strings.Repeat("x", row.length-around)},
			}}
			before := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{
				{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "migrate", Digest: "d", Content: "c"},
			}}}
			got := before.WithFinished("default", last, ownership.Succeeded)[0].Objects[0]
			if got.Ended != ownership.Succeeded || (got.Last != "") != row.want {
				t.Errorf("%s: it ended as %q, with %d bytes of its status", row.reason, got.Ended, len(got.Last))
			}
		})
	}
}
