package status_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/status"
)

func component(name string, state status.State) status.Component {
	return status.Component{Name: name, State: state, Reason: status.ReasonNotReady, Message: "m"}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	verified := []status.Component{component("a", status.Verified), component("b", status.Excluded)}
	applied := []status.Component{component("a", status.Verified), component("b", status.Applied)}
	rows := map[string]struct {
		reason string
		before status.Phase
		c      status.Completion
		want   status.Phase
	}{
		"there is nothing to do":                 {"every component is excluded, or there is none", "", status.Completion{Change: status.Unchanged}, status.PhaseReady},
		"the plan is stored for the first time":  {"no object is written yet", "", status.Completion{Components: applied, Change: status.Changed, Planned: true}, status.PhaseCreated},
		"the plan is stored again after a crash": {"there was no rollout in between", status.PhaseCreated, status.Completion{Components: applied, Change: status.Changed, Planned: true}, status.PhaseCreated},
		"a plan of what is all in sync":          {"hooks and pruning are still to come", status.PhaseReady, status.Completion{Components: verified, Change: status.Changed, Planned: true}, status.PhaseReconciling},
		"something was written":                  {"the rollout is on its way", "", status.Completion{Components: applied, Change: status.Changed}, status.PhaseReconciling},
		"all was written, not all is healthy":    {"pods come up", status.PhaseReconciling, status.Completion{Components: applied, Change: status.Unchanged}, status.PhaseWaiting},
		"all is healthy":                         {"an excluded component does not count", status.PhaseWaiting, status.Completion{Components: verified, Change: status.Unchanged}, status.PhaseReady},
		"a ready one is scaled":                  {"the seed's transition", status.PhaseReady, status.Completion{Components: applied, Change: status.Rescaled}, status.PhaseScaling},
		"scaling goes on":                        {"pods come up", status.PhaseScaling, status.Completion{Components: applied, Change: status.Unchanged}, status.PhaseScaling},
		"scaling ends":                           {"the seed's way back", status.PhaseScaling, status.Completion{Components: verified, Change: status.Unchanged}, status.PhaseReady},
		"scaling is overtaken by a change":       {"another image while scaling", status.PhaseScaling, status.Completion{Components: applied, Change: status.Changed}, status.PhaseReconciling},
		"scaling before it was ever ready":       {"it is still rolling out", status.PhaseWaiting, status.Completion{Components: applied, Change: status.Rescaled}, status.PhaseReconciling},
		"a ready one regresses":                  {"nothing was written", status.PhaseReady, status.Completion{Components: applied, Change: status.Unchanged}, status.PhaseWaiting},
		"a component failed":                     {"a person has to act", status.PhaseWaiting, status.Completion{Components: []status.Component{component("a", status.Failed)}, Change: status.Changed}, status.PhaseFailed},
		"the spec is invalid":                    {"whatever the components are", status.PhaseReady, status.Completion{Components: verified, Fault: status.Component{State: status.Failed, Reason: status.ReasonInvalidSpec}}, status.PhaseFailed},
		"the cluster refuses something":          {"it is tried again", status.PhaseReconciling, status.Completion{Components: []status.Component{component("a", status.Retrying)}, Change: status.Unchanged}, status.PhaseWaiting},
		"the cluster does not answer":            {"nothing is known to be wrong", status.PhaseReady, status.Completion{Fault: status.Component{State: status.Retrying, Reason: status.ReasonApplyFailed}, Change: status.Unchanged}, status.PhaseWaiting},
		"a failed one recovers":                  {"the fault is gone", status.PhaseFailed, status.Completion{Components: verified, Change: status.Unchanged}, status.PhaseReady},
		"something is still to be deleted":       {"ready would be early", status.PhaseReady, status.Completion{Components: verified, Pruning: "Service x is being deleted", Change: status.Unchanged}, status.PhaseReconciling},
		"it is being deleted":                    {"from every phase", status.PhaseFailed, status.Completion{Deleting: true}, status.PhaseDeleting},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := status.PhaseOf(status.Build(status.Input{Completion: row.c, Before: map[string]any{"phase": string(row.before)}}))
			if got != row.want {
				t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
			}
		})
	}
}

func TestConditionsKeepTheirTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := status.Completion{Components: []status.Component{component("a", status.Applied)}, Change: status.Changed}
	first := status.Build(status.Input{Completion: c, Generation: 1, Now: start})
	for i := range 100 {
		next := status.Build(status.Input{Completion: c, Generation: 1, Now: start.Add(time.Duration(i) * time.Minute), Before: first})
		if diff := cmp.Diff(first, next); diff != "" {
			t.Fatalf("D6: the status flaps (-first +next):\n%s", diff)
		}
	}
	c.Components[0].State = status.Verified
	ready := status.Build(status.Input{Completion: c, Generation: 1, Now: start.Add(time.Hour), Before: first})
	conditions, _ := ready["conditions"].([]any)
	condition, _ := conditions[0].(map[string]any)
	if diff := cmp.Diff("2026-01-01T01:00:00Z", condition["lastTransitionTime"]); diff != "" {
		t.Errorf("Ready changed, so its time does (-want +got):\n%s", diff)
	}
}

// The status of a resource that another framework has reconciled may have conditions of the same
// types without the time, which the schema of the engine's CRDs demands.
func TestConditionsHaveATimeWhateverWasThere(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0).UTC()
	timeless := map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Initializing", "message": "", "lastTransactionTime": "2025-01-01T00:00:00"},
		map[string]any{"type": "Updating", "status": "True", "reason": "Updating", "message": ""},
	}}
	for name, s := range map[string]map[string]any{
		"a reconcile":      status.Build(status.Input{Before: timeless, Generation: 1, Now: now, Completion: status.Completion{Components: []status.Component{component("a", status.Applied)}}}),
		"a pause":          status.Paused(timeless, 1, now),
		"a broken package": status.PackageBroken(timeless, 1, now, "x"),
	} {
		for _, c := range s["conditions"].([]any) {
			if m, _ := c.(map[string]any); m["lastTransitionTime"] != "1970-01-01T00:16:40Z" {
				t.Errorf("%s: %v changed at %v", name, m["type"], m["lastTransitionTime"])
			}
		}
	}
}

// An API server that stored a status before its schema made conditions a map may still have two
// conditions of one type. It refuses any status that has both.
func TestDuplicateConditionsOfAnOldStatusAreDropped(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0).UTC()
	old := func(kind, status, reason string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "1970-01-01T00:00:01Z"}
	}
	before := map[string]any{"conditions": []any{
		old("Ready", "False", "First"), old("Audited", "True", "First"), old("Ready", "True", "Second"), old("Audited", "False", "Second"), old("Ready", "True", "Third"),
	}}
	for name, s := range map[string]map[string]any{
		"a reconcile":      status.Build(status.Input{Before: before, Generation: 1, Now: now, Completion: status.Completion{Components: []status.Component{component("a", status.Applied)}}}),
		"a pause":          status.Paused(before, 1, now),
		"a broken package": status.PackageBroken(before, 1, now, "x"),
	} {
		seen := map[any]any{}
		for _, c := range s["conditions"].([]any) {
			m, _ := c.(map[string]any)
			if was, twice := seen[m["type"]]; twice {
				t.Errorf("%s: %v is there twice, with the reasons %v and %v", name, m["type"], was, m["reason"])
			}
			seen[m["type"]] = m["reason"]
		}
	}
}

func TestWhatMattersIsNeverHeldBack(t *testing.T) {
	t.Parallel()
	base := func() status.Completion {
		return status.Completion{
			Components: []status.Component{component("a", status.Verified), component("b", status.Applied)},
			Change:     status.Unchanged, Own: map[string]any{"replicas": int64(1)},
		}
	}
	before := status.Build(status.Input{Completion: base(), Generation: 1})
	rows := map[string]struct {
		reason string
		change func(*status.Input)
		want   status.Significance
	}{
		"nothing":               {"", func(*status.Input) {}, status.NoChange},
		"a message":             {"a pod more", func(in *status.Input) { in.Completion.Components[1].Message = "2/3" }, status.ProgressOnly},
		"the author's number":   {"a pod more", func(in *status.Input) { in.Completion.Own = map[string]any{"replicas": int64(2)} }, status.ProgressOnly},
		"a component is ready":  {"and with it the whole", func(in *status.Input) { in.Completion.Components[1].State = status.Verified }, status.Substance},
		"a component failed":    {"a person has to act", func(in *status.Input) { in.Completion.Components[1].State = status.Failed }, status.StateOnly},
		"the generation":        {"kubectl wait looks at it", func(in *status.Input) { in.Generation = 2 }, status.Substance},
		"a grown inventory":     {"it guards objects", func(in *status.Input) { in.Inventory = []any{map[string]any{"component": "a"}} }, status.Substance},
		"another package":       {"people wait for it", func(in *status.Input) { in.Digest = "sha256:2" }, status.Substance},
		"a component left over": {"it is waiting, as before", func(in *status.Input) { in.Completion.Components[1].State = status.Waiting }, status.ProgressOnly},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := status.Input{Completion: base(), Generation: 1, Before: before}
			row.change(&in)
			if got := status.CompareSignificance(before, status.Build(in)); got != row.want {
				t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
			}
		})
	}
}

func TestTheSummaryNamesTheWorst(t *testing.T) {
	t.Parallel()
	c := status.Completion{Change: status.Unchanged, Components: []status.Component{
		{Name: "front", State: status.Waiting, Reason: status.ReasonDependency, Message: "waiting for web"},
		{Name: "web", State: status.Applied, Reason: status.ReasonNotReady, Message: "1/3"},
		{Name: "db", State: status.Failed, Reason: status.ReasonObjectFailed, Message: "crashed"},
	}}
	s := status.Build(status.Input{Completion: c, Generation: 1, Now: time.Unix(0, 0)})
	conditions, _ := s["conditions"].([]any)
	ready, _ := conditions[0].(map[string]any)
	want := map[string]any{
		"type": "Ready", "status": "False", "reason": "ObjectFailed", "observedGeneration": int64(1),
		"lastTransitionTime": "1970-01-01T00:00:00Z",
		"message":            "db: crashed; and 2 more components are not ready",
	}
	if diff := cmp.Diff(want, ready); diff != "" {
		t.Errorf("the failed one comes first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("0/3", s["componentsReady"]); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
}

func TestTheSummarySaysWhatTheWorstBlocks(t *testing.T) {
	t.Parallel()
	many := []status.Component{{Name: "web", State: status.Applied, Reason: status.ReasonNotReady, Message: "1/3"}}
	for i := range 12 {
		many = append(many, status.Component{Name: fmt.Sprint("front-", i), State: status.Waiting, Reason: status.ReasonDependency, WaitsFor: []string{"web"}})
	}
	other := status.Component{Name: "db", State: status.Applied, Reason: status.ReasonNotReady, Message: "0/1"}
	rows := map[string]struct {
		reason     string
		components []status.Component
		want       string
	}{
		"nothing":            {"", many[:1], "web: 1/3"},
		"one":                {"", many[:2], "web: 1/3; front-0 waits for it"},
		"two, and another":   {"another has a cause of its own", append(slices.Clone(many[:3]), other), "web: 1/3; front-0 and front-1 wait for it; and 1 more component is not ready"},
		"the cause first":    {"a person should look at it, and not at who waits for it", []status.Component{many[1], {Name: "web", State: status.Waiting, Message: "waiting for a value"}}, "web: waiting for a value; front-0 waits for it"},
		"more than are told": {"", many, "web: 1/3; front-0, front-1, front-2, front-3, front-4, front-5, front-6, front-7, front-8, front-9 and 2 more wait for it"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := status.Build(status.Input{Completion: status.Completion{Components: row.components}})
			ready, _ := s["conditions"].([]any)[0].(map[string]any)
			if diff := cmp.Diff(row.want, ready["message"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatWasNotEvaluatedStaysAsItWas(t *testing.T) {
	t.Parallel()
	before := map[string]any{"url": "u", "phase": "Ready"}
	rows := map[string]struct {
		reason string
		c      status.Completion
		want   any
	}{
		"a teardown":             {"it needs no package", status.Completion{Deleting: true}, "u"},
		"an invalid spec":        {"nothing was looked at", status.Completion{Fault: component("", status.Failed)}, "u"},
		"an evaluation":          {"the field cannot be known any more", status.Completion{Own: map[string]any{"count": 1}}, nil},
		"a package without them": {"it has lost its fields", status.Completion{Own: map[string]any{}}, nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := status.Build(status.Input{Completion: row.c, Before: before})["url"]; got != row.want {
				t.Errorf("%s: url is %v, want %v", row.reason, got, row.want)
			}
		})
	}
}

func TestAnAuthorCannotOverwriteTheEngine(t *testing.T) {
	t.Parallel()
	s := status.Build(status.Input{Completion: status.Completion{Own: map[string]any{"phase": "Perfect", "url": "u"}}})
	if s["phase"] == "Perfect" || s["url"] != "u" {
		t.Errorf("got phase %v and url %v", s["phase"], s["url"])
	}
}

func TestARefusedDeletionHasAReasonOfItsOwn(t *testing.T) {
	t.Parallel()
	for want, c := range map[status.Reason]status.Completion{
		status.ReasonPruning:      {Components: []status.Component{component("a", status.Verified)}, Pruning: "it waits"},
		status.ReasonDeleteFailed: {Components: []status.Component{component("a", status.Verified)}, Pruning: "the webhook says no", Refused: true},
	} {
		out := status.Build(status.Input{Completion: c})
		ready, _ := out["conditions"].([]any)[0].(map[string]any)
		if ready["reason"] != string(want) || ready["message"] != c.Pruning || ready["status"] != "False" {
			t.Errorf("got %v, want reason %s and message %q", ready, want, c.Pruning)
		}
	}
}

func TestADeletionThatIsStuckIsStalled(t *testing.T) {
	t.Parallel()
	going := status.Component{Name: "web", State: status.Deleting, Reason: status.ReasonDeleting, Message: "it is on its way"}
	for name, row := range map[string]struct {
		reason string
		c      status.Completion
		want   []any // the status of Ready, Reconciling and Stalled
	}{
		"objects are on their way":  {"it goes on by itself", status.Completion{Components: []status.Component{going}}, []any{"False", "True", "False"}},
		"a hook runs":               {"it goes on by itself", status.Completion{Components: []status.Component{component("hooks.beforeDelete.x", status.Applied)}}, []any{"False", "True", "False"}},
		"a hook has failed":         {"a person has to act", status.Completion{Components: []status.Component{component("hooks.beforeDelete.x", status.Failed)}}, []any{"False", "False", "True"}},
		"the status cannot be read": {"a person has to act", status.Completion{Fault: status.Component{Reason: status.ReasonStatusUnreadable}}, []any{"False", "False", "True"}},
	} {
		row.c.Deleting = true
		s := status.Build(status.Input{Completion: row.c})
		var got []any
		for _, c := range s["conditions"].([]any) {
			got = append(got, c.(map[string]any)["status"])
		}
		if diff := cmp.Diff(row.want, got); diff != "" || s["phase"] != "Deleting" {
			t.Errorf("%s: %s: phase %v (-want +got):\n%s", name, row.reason, s["phase"], diff)
		}
	}
}

func TestTheVersionIsReconciledByWhatIsDoneAndNotByWhatIsPlanned(t *testing.T) {
	t.Parallel()
	c := status.Completion{Components: []status.Component{component("a", status.Verified)}, Planned: true}
	planned := status.Build(status.Input{Completion: c, Version: "v1"})
	c.Planned = false
	done := status.Build(status.Input{Completion: c, Version: "v1", Before: planned})
	later := status.Build(status.Input{Completion: status.Completion{Components: []status.Component{component("a", status.Applied)}}, Version: "v2", Before: done})
	want := []any{map[string]any{"desired": "v1"}, map[string]any{"desired": "v1", "reconciled": "v1"}, map[string]any{"desired": "v2", "reconciled": "v1"}}
	if diff := cmp.Diff(want, []any{planned["versions"], done["versions"], later["versions"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeSeenAgainIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	said := func(fields map[string]any) map[string]any {
		fields["object"] = "o"
		return map[string]any{"inventory": []any{map[string]any{"component": "a", "objects": []any{fields}}}}
	}
	for name, row := range map[string]struct {
		reason string
		after  map[string]any
		want   status.Significance
	}{
		"a digest": {"the object has it as well", map[string]any{"digest": "d"}, status.ProgressOnly},
		"content":  {"the object may have ended before the next status", map[string]any{"content": "c"}, status.Substance},
		"its end":  {"the object may remove itself", map[string]any{"content": "c", "ended": "Succeeded"}, status.Substance},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := status.CompareSignificance(said(map[string]any{}), said(row.after)); got != row.want {
				t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
			}
		})
	}
}
