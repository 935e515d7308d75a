package testcase_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/testcase"
)

// TestAPhaseIsTheOneThatTheStatusHas has the phase that a test, or a step of it, wants, with what is said of it.
func TestAPhaseIsTheOneThatTheStatusHas(t *testing.T) {
	t.Parallel()
	const (
		token = `others: t: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "token", data: token: "T"}`
		live  = `live: {data: {cm: {}, secret: {}, list: spec: clusterIP: "10.0.0.7"}, door: cm: {}}`
		ann   = `given: {cr: spec: {name: "ann", size: 3}, ` + token + "}\n"
		there = `given: {cr: spec: {name: "ann", size: 3}, ` + token + ", " + live + "}\n"
		small = `given: {cr: spec: name: "ann", ` + token + ", " + live + "}\n"
		steps = ann + "want: {}\nsteps: "
	)
	for name, c := range map[string]struct {
		reason, test string
		want         []string
	}{
		"objects are about to be written":     {"nothing is there yet", ann + `want: phase: "Reconciling"`, nil},
		"everything is there and healthy":     {"there is nothing to write, and nothing to wait for", there + `want: phase: "Ready"`, nil},
		"something is not healthy":            {"there is nothing to write", small + `want: {phase: "Waiting", components: door: state: "Applied"}`, nil},
		"an object is of an earlier package":  {"it will be updated", there + `given: live: data: cm: metadata: annotations: "operetta.dev/applied": "sha256:1"` + "\n" + `want: phase: "Reconciling"`, nil},
		"the input of a component is missing": {"what waits is not written", `given: {cr: spec: name: "ann", live: data: {cm: {}, secret: {}, list: {}}}` + "\n" + `want: phase: "Waiting"`, nil},
		"the resource is invalid":             {"a person has to change it", `given: cr: spec: {name: "ann", size: 10}` + "\n" + `want: {phase: "Failed", error: "size"}`, nil},
		"it was scaled before":                {"the phase before counts, as in a reconcile", small + `given: cr: status: phase: "Scaling"` + "\n" + `want: phase: "Scaling"`, nil},
		"another phase":                       {"got and want are said, at the line that wants it", ann + `want: phase: "Ready"`, []string{`shop_test.cue:4: phase: want "Ready", got "Reconciling"`}},
		"one of two phases":                   {"a constraint holds", ann + `want: phase: "Ready" | "Reconciling"`, nil},
		"none of two phases":                  {"a constraint does not hold", ann + `want: phase: "Ready" | "Waiting"`, []string{`shop_test.cue:4: phase: want "Ready" | "Waiting", got "Reconciling"`}},
		"a step that comes to rest":           {"the status says so", steps + `[{want: {ready: true, phase: "Ready"}}]`, nil},
		"a step of one reconcile": {
			"the status was written by that reconcile, although the next one would find nothing to do",
			steps + `[{}, {cr: spec: size: 1, run: "once", want: {phase: "Reconciling", components: door: state: "Applied"}}]`, nil,
		},
		"a step in which nobody acts":     {"no operator has written a status", steps + `[{run: "never", want: phase: "Ready"}]`, []string{`shop_test.cue:5: steps[0].phase: want "Ready", and there is none`}},
		"a step that is invalid":          {"a person has to change it", steps + `[{}, {cr: spec: size: 10, want: {phase: "Failed", error: "size"}}]`, nil},
		"a step with another phase":       {"its number is said", steps + `[{}, {cr: spec: size: 1, want: phase: "Ready"}]`, []string{`shop_test.cue:5: steps[1].phase: want "Ready", got "Waiting"`}},
		"a step that deletes":             {"what is gone has no phase", steps + `[{}, {delete: true, want: {gone: true, phase: "Deleting"}}]`, []string{`shop_test.cue:5: steps[1].phase: want "Deleting", and there is none`}},
		"a step in which it goes on":      {"its objects are on their way out", steps + `[{}, {delete: true, run: "once", faults: refuseAt: 1, want: phase: "Deleting"}]`, nil},
		"what the step changes, in steps": {"the phase before counts", steps + `[{cr: spec: size: 1, want: phase: "Waiting"}, {cr: spec: size: 3, want: phase: "Ready"}]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range run(t, "package shop\n\ntests: t: {"+c.test+"}\n")[0].Differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: differences (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestATimeoutIsNoFault has a component with a timeout that waits, by the steps of a test.
func TestATimeoutIsNoFault(t *testing.T) {
	t.Parallel()
	const (
		text = header + `
components: a: {
	timeout: "5m"
	objects: o: #CM & {metadata: name: "a"}
	verify: big: cr.spec.size > 1
}
`
		late = `phase: "Failed", components: a: {state: "Failed", reason: "TimedOut", message: =~"^not ready within 5m0s: verify.big"}`
	)
	for name, c := range map[string]struct{ reason, steps string }{
		"a step that comes to rest":       {"time passes until nothing changes any more, and the package is right all the same", `{want: {` + late + `}}`},
		"a step without controllers":      {"time passes all the same", `{controllers: "never", want: {` + late + `}}`},
		"a step of one reconcile":         {"a second has passed", `{run: "once", want: {phase: "Waiting", components: a: {state: "Applied", reason: "NotReady"}}}`},
		"a change after it has timed out": {"it is what a person does then", `{want: {` + late + `}}, {cr: spec: size: 2, want: {ready: true, phase: "Ready"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, tests := loadTests(t, text, "package shop\n\ntests: t: {given: cr: spec: {}, want: {}, steps: ["+c.steps+"]}\n")
			results, _, err := testcase.Run(t.Context(), p, tests)
			if err != nil || len(results[0].Differences) > 0 {
				t.Errorf("%s: %v %v", c.reason, err, results[0].Differences)
			}
		})
	}
}
