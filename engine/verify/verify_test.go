package verify_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/verify"
	"operetta.dev/test/readiness"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	wants := map[readiness.Stage]verify.Health{
		readiness.NotYet: verify.Progressing, readiness.Stale: verify.Progressing,
		readiness.Ready: verify.Ready, readiness.Failed: verify.Failed,
	}
	for _, k := range healthByKind(t) {
		for _, c := range k.Cases {
			t.Run(k.Title+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				live := k.Live(c)
				before := live.DeepCopy()
				want := verify.Judgement{Health: wants[c.Stage], Message: c.Message}
				if diff := cmp.Diff(want, verify.Object(live, "ready")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.Reason, diff)
				}
				if diff := cmp.Diff(before, live); diff != "" {
					t.Errorf("the object was changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// TestWhereKstatusSaysSomethingElseIsKnown shows which cases need a rule, and which do not
// any more after an update of that library.
func TestWhereKstatusSaysSomethingElseIsKnown(t *testing.T) {
	t.Parallel()
	stages := map[status.Status]readiness.Stage{
		status.InProgressStatus: readiness.NotYet, status.TerminatingStatus: readiness.NotYet,
		status.CurrentStatus: readiness.Ready, status.FailedStatus: readiness.Failed,
	}
	for _, k := range healthByKind(t) {
		for _, c := range k.Cases {
			got := readiness.NotYet
			if result, err := status.Compute(k.Live(c)); err == nil {
				got = stages[result.Status]
			}
			if got == readiness.NotYet && c.Stage == readiness.Stale {
				got = readiness.Stale
			}
			want := c.Kstatus
			if want == "" {
				want = c.Stage
			}
			if got != want || c.Kstatus == c.Stage {
				t.Errorf("%s %s: kstatus says it is %s, and the case that it says %q", k.Title, c.Name, got, c.Kstatus)
			}
		}
	}
}

// healthByKind returns the kinds with their cases.
func healthByKind(t *testing.T) []readiness.Kind {
	t.Helper()
	out, err := readiness.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAPolicySaysHowMuchIsAskedOfAnObject(t *testing.T) {
	t.Parallel()
	unready := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"generation": int64(2)},
	}}
	ready, absent := verify.Judgement{Health: verify.Ready}, verify.Judgement{Health: verify.Progressing, Message: "it does not exist yet"}
	for name, row := range map[string]struct {
		reason string
		live   *unstructured.Unstructured
		policy string
		want   verify.Judgement
	}{
		"absent":                   {"it has to be created", nil, "ready", absent},
		"absent, existence wanted": {"it has to be created", nil, "exists", absent},
		"absent and not looked at": {"nothing is asked", nil, "none", ready},
		"there, and that is all":   {"no health is asked", unready, "exists", ready},
		"there, and not looked at": {"nothing is asked", unready, "none", ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, verify.Object(row.live, row.policy)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestPredicates(t *testing.T) {
	t.Parallel()
	p := func(name string, v program.Verdict) program.Predicate {
		return program.Predicate{Name: name, Verdict: v, Source: "a >= b", Detail: "is 1, wanted >= 3", Position: fault.Position{File: "f.cue", Line: 7}}
	}
	rows := map[string]struct {
		reason         string
		verify, failed []program.Predicate
		want           verify.Judgement
	}{
		"none":                 {"there is nothing to ask", nil, nil, verify.Judgement{Health: verify.Ready}},
		"all hold":             {"", []program.Predicate{p("x", program.True)}, nil, verify.Judgement{Health: verify.Ready}},
		"one does not":         {"it says which, where and by how much", []program.Predicate{p("x", program.True), p("y", program.False)}, nil, verify.Judgement{Health: verify.Progressing, Message: "verify.y: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
		"one is unknown":       {"it waits as well", []program.Predicate{p("x", program.Unknown)}, nil, verify.Judgement{Health: verify.Progressing, Message: "verify.x: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
		"one is broken":        {"waiting would never end", []program.Predicate{p("w", program.False), p("x", program.Broken)}, nil, verify.Judgement{Health: verify.Broken, Message: "verify.x cannot be decided: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
		"failed for good":      {"failure wins over waiting", []program.Predicate{p("x", program.False)}, []program.Predicate{p("f", program.True)}, verify.Judgement{Health: verify.Failed, Message: "failed.f holds: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
		"failure unknown":      {"it has not failed as far as is known", []program.Predicate{p("x", program.True)}, []program.Predicate{p("f", program.Unknown)}, verify.Judgement{Health: verify.Ready}},
		"failure undecidable":  {"a typo there would hide every failure", nil, []program.Predicate{p("f", program.Broken)}, verify.Judgement{Health: verify.Broken, Message: "failed.f cannot be decided: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
		"the first one counts": {"one message, always the same", []program.Predicate{p("x", program.False), p("y", program.Unknown)}, nil, verify.Judgement{Health: verify.Progressing, Message: "verify.x: a >= b: is 1, wanted >= 3 (f.cue:7)"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, verify.Predicates(row.verify, row.failed)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestTheResourceOfAnotherOperatorIsReadyWhenThatSaysSo(t *testing.T) {
	t.Parallel()
	resource := func(conditions ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Child", "metadata": map[string]any{"name": "a", "generation": int64(2)},
		}}
		if len(conditions) > 0 {
			u.Object["status"] = map[string]any{"conditions": conditions}
		}
		return u
	}
	ready := func(status string, generation int64) any {
		return map[string]any{"type": "Ready", "status": status, "observedGeneration": generation, "message": "web: two pods of three"}
	}
	for name, row := range map[string]struct {
		live *unstructured.Unstructured
		want verify.Judgement
	}{
		"no status":          {resource(), verify.Judgement{Health: verify.Progressing, Message: "its operator has not reported on it yet"}},
		"another condition":  {resource(map[string]any{"type": "Synced", "status": "True"}), verify.Judgement{Health: verify.Progressing, Message: "its operator has not reported on it yet"}},
		"an old generation":  {resource(ready("True", 1)), verify.Judgement{Health: verify.Progressing, Message: "its operator has not seen the current generation yet"}},
		"not ready":          {resource(ready("False", 2)), verify.Judgement{Health: verify.Progressing, Message: "web: two pods of three"}},
		"without a message":  {resource(map[string]any{"type": "Ready", "status": "False", "reason": "Starting"}), verify.Judgement{Health: verify.Progressing, Message: "Starting"}},
		"ready":              {resource(ready("True", 2)), verify.Judgement{Health: verify.Ready}},
		"without generation": {resource(map[string]any{"type": "Ready", "status": "True"}), verify.Judgement{Health: verify.Ready}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := verify.ReadyCondition(row.live); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}
