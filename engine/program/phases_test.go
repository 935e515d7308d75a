package program_test

import (
	"testing"

	"operetta.dev/engine/program"
)

func TestThePhasesThatMayHaveHooksAreKnownFromTheText(t *testing.T) {
	t.Parallel()
	const job = `{objects: o: {apiVersion: "batch/v1", kind: "Job", metadata: name: "o"}}`
	rows := map[string]struct {
		reason, text string
		want         bool
	}{
		"none":                  {"most packages have none", ``, false},
		"of another phase":      {"it runs at another time", `hooks: afterDeploy: a: ` + job, false},
		"of this one":           {"as written", `hooks: beforeDelete: a: ` + job, true},
		"under a condition":     {"it may hold when the time comes", `if cr.spec.size > 2 {hooks: beforeDelete: a: ` + job + `}`, true},
		"of a computed phase":   {"only an evaluation knows", `hooks: "before\(_what)": a: ` + job + "\n_what: \"Delete\"", true},
		"behind another field":  {"the text of a reference is not followed", "hooks: _hooks\n_hooks: beforeDelete: a: " + job, true},
		"a constraint on hooks": {"it adds none", `hooks: [string]: [string]: timeout: "5m"`, false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := compile(t, row.text).MayRun(program.BeforeDelete); got != row.want {
				t.Errorf("%s: got %v, want %v", row.reason, got, row.want)
			}
		})
	}
}
