package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/status"
)

func TestAResourceWhoseRevisionCannotServeItSaysSoAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	before := map[string]any{"observedGeneration": int64(1), "inventory": []any{"x"}, "phase": "Ready", "package": map[string]any{"digest": "sha256:1"}}
	said := status.RevisionUnusable(before, 2, now, "it is gone")
	got := map[string]string{}
	for _, kind := range status.Conditions {
		if c := status.Condition(said, kind); c != nil {
			got[kind] = string(c.Status) + " " + c.Reason + " " + c.Message
		}
	}
	want := map[string]string{
		"Ready": "False RevisionUnusable nothing is reconciled: it is gone", "Reconciling": "False Failed ", "Stalled": "True RevisionUnusable nothing is reconciled: it is gone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the conditions (-want +got):\n%s", diff)
	}
	for field, want := range map[string]any{"observedGeneration": int64(2), "inventory": before["inventory"], "package": before["package"], "phase": "Failed"} {
		if diff := cmp.Diff(want, said[field]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
	if !status.Equal(said, status.RevisionUnusable(said, 2, now.Add(time.Hour), "it is gone")) {
		t.Error("saying it again changes the status")
	}
	if _, known := status.RevisionUnusable(nil, 2, now, "it is gone")["observedGeneration"]; known {
		t.Error("a status that was lost says which generation was observed")
	}
}
