package status_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/status"
)

// conditionsOf returns status and reason of each condition.
func conditionsOf(s map[string]any) map[string]string {
	out := map[string]string{}
	all, _ := s["conditions"].([]any)
	for _, c := range all {
		m, _ := c.(map[string]any)
		kind, _ := m["type"].(string)
		is, _ := m["status"].(string)
		reason, _ := m["reason"].(string)
		out[kind] = is + " " + reason
	}
	return out
}

func TestBrokenPackageChangesWhatIsSaidAndNothingThatIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := status.Completion{Components: []status.Component{component("a", status.Verified)}, Own: map[string]any{"url": "x"}}
	build := func(before map[string]any, generation int64, fault string) map[string]any {
		return status.Build(status.Input{
			Completion: c, Before: before, Generation: generation, Now: now, Package: "shop", Digest: "sha256:1", PackageFault: fault, Inventory: []any{"kept"},
		})
	}
	good := build(nil, 1, "")
	asked := status.AskWhetherServed(good, 2, now)
	said := status.PackageBroken(asked, 2, now, "x.cue:1")
	again := build(said, 2, "")
	last := build(good, 1, "x.cue:1")
	ready := map[string]string{"Ready": "True Ready", "Reconciling": "False Ready", "Stalled": "False NotStalled"}
	with := func(broken string) map[string]string {
		out := map[string]string{"PackageBroken": broken}
		maps.Copy(out, ready)
		return out
	}
	failed := map[string]string{"Ready": "False PackageBroken", "Reconciling": "False Failed", "Stalled": "True PackageBroken", "PackageBroken": "True NotServed"}
	for name, row := range map[string]struct {
		got      map[string]any
		want     map[string]string
		disputed bool
	}{
		"good": {good, ready, false}, "asked": {asked, with("Unknown Asking"), true}, "said": {said, failed, true},
		"served again": {again, ready, false}, "the last good one": {last, with("True LastGoodVersion"), false},
	} {
		if diff := cmp.Diff(row.want, conditionsOf(row.got)); diff != "" || status.SaysNotServed(row.got) != row.disputed {
			t.Errorf("%s: disputed %v (-want +got):\n%s", name, status.SaysNotServed(row.got), diff)
		}
		for _, field := range []string{"inventory", "package", "components", "componentsReady", "url", "versions"} {
			if diff := cmp.Diff(good[field], row.got[field]); diff != "" {
				t.Errorf("%s: %s (-good +got):\n%s", name, field, diff)
			}
		}
	}
	if !status.Equal(said, status.PackageBroken(said, 2, now.Add(time.Hour), "x.cue:1")) {
		t.Error("the same fault is said anew")
	}
	for _, w := range []status.Significance{status.CompareSignificance(said, again), status.CompareSignificance(asked, good)} {
		if w != status.Substance && w != status.StateOnly {
			t.Errorf("an answer is held back as %s", w)
		}
	}
	if _, invented := status.PackageBroken(nil, 1, now, "x")["observedGeneration"]; invented {
		t.Error("a status that was lost looks as if it was not")
	}
}
