package verify_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	"operetta.dev/engine/verify"
	"sigs.k8s.io/yaml"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		live   string
		policy string
		want   verify.Judgement
	}{
		"absent":                          {"it has to be created", "", "ready", verify.Judgement{Health: verify.Progressing, Message: "it does not exist yet"}},
		"absent and not looked at":        {"policy none", "", "none", verify.Judgement{Health: verify.Ready}},
		"there, and that is enough":       {"policy exists", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}}", "exists", verify.Judgement{Health: verify.Ready}},
		"a ConfigMap":                     {"it has no status", "{apiVersion: v1, kind: ConfigMap}", "ready", verify.Judgement{Health: verify.Ready}},
		"a Deployment nobody looked at":   {"F6: the status is about an older generation", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "Deployment generation is 2, but latest observed generation is 1"}},
		"a Deployment that is available":  {"all replicas serve", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Ready}},
		"a Deployment past its deadline":  {"it will not get there by itself", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", "ready", verify.Judgement{Health: verify.Failed, Message: "Progress deadline exceeded"}},
		"a Job that runs":                 {"kstatus calls it current; its dependents need its result", "{apiVersion: batch/v1, kind: Job, status: {startTime: x, active: 1}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "the Job is running"}},
		"a Job that is complete":          {"", "{apiVersion: batch/v1, kind: Job, status: {startTime: x, succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Ready}},
		"a Job that failed":               {"", "{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {startTime: x, failed: 1, conditions: [{type: Failed, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Failed, Message: "Job Failed. failed: 1/1"}},
		"an unknown kind, not Ready":      {"its own condition", "{apiVersion: example.com/v1, kind: Db, status: {conditions: [{type: Ready, status: 'False', message: starting}]}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "starting"}},
		"an unknown kind, Ready":          {"its own condition", "{apiVersion: example.com/v1, kind: Db, status: {conditions: [{type: Ready, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Ready}},
		"an unknown kind, other schema":   {"its controller has not seen the generation", "{apiVersion: example.com/v1, kind: Db, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "Db generation is 2, but latest observed generation is 1"}},
		"a Service without its address":   {"kstatus asks for the cluster IP; the address is for a predicate", "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "ClusterIP not set. Service type: LoadBalancer"}},
		"an object that is going already": {"it is not what was asked for", "{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}", "ready", verify.Judgement{Health: verify.Progressing, Message: "Resource scheduled for deletion"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := verify.Object(parse(t, row.live), row.policy)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPredicates(t *testing.T) {
	t.Parallel()
	p := func(name string, v program.Verdict) program.Predicate {
		return program.Predicate{Name: name, Verdict: v, Source: "a >= b", Detail: "is 1, wanted >= 3", Position: program.Position{File: "f.cue", Line: 7}}
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
		"an old generation":  {resource(ready("True", 1)), verify.Judgement{Health: verify.Progressing, Message: "its operator has not seen the present generation yet"}},
		"not ready":          {resource(ready("False", 2)), verify.Judgement{Health: verify.Progressing, Message: "web: two pods of three"}},
		"ready":              {resource(ready("True", 2)), verify.Judgement{Health: verify.Ready}},
		"without generation": {resource(map[string]any{"type": "Ready", "status": "True"}), verify.Judgement{Health: verify.Ready}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := verify.Reported(row.live); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}
