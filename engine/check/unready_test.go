package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
)

// TestAValueThatKeepsAResourceFromBecomingReadyIsNamed: a predicate that is false for good because of one value that the schema lists.
func TestAValueThatKeepsAResourceFromBecomingReadyIsNamed(t *testing.T) {
	t.Parallel()
	const web = `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: {replicas: 2, selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "nginx"}]}}}
_ready: *live.web.deployment.status.readyReplicas | 0
`
	for name, row := range map[string]struct {
		reason       string
		spec, verify string
		want         []string
	}{
		"one value of an enumeration": {
			"nothing else is asked for", `mode: "plain" | "strict" | *"plain"`, `verify: up: _ready >= [if cr.spec.mode == "strict" {3}, 2][0]`,
			[]string{`components.web.verify.up: _ready >= [if cr.spec.mode == "strict" {3}, 2][0] is never true while spec.mode is "strict": is 2, wanted >= 3`},
		},
		"a switch": {
			"it may be meant, and is said", "paused: bool | *false", "verify: up: _ready >= 2 && !cr.spec.paused",
			[]string{`components.web.verify.up: _ready >= 2 && !cr.spec.paused is never true while spec.paused is true`},
		},
		"two values together": {
			"users may ask for things that contradict each other", `mode: "plain" | "strict" | *"plain", paused: bool | *false`, `verify: up: _ready >= [if cr.spec.mode == "strict" if cr.spec.paused {3}, 2][0]`,
			nil,
		},
		"a number": {
			"there may be no bound that the author means", "wanted: int & >=0 & <=5 | *1", "verify: up: _ready >= cr.spec.wanted",
			nil,
		},
		"every value": {
			"there is nothing to say", `mode: "plain" | "strict" | *"plain"`, "verify: up: _ready >= 2",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := check.Run(t.Context(), typedPackage(t, row.spec, web+"components: web: "+row.verify), check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range report.Unready {
				got = append(got, u.Fault.Path+": "+u.Fault.Message)
				if u.Fault.Position.IsZero() {
					t.Errorf("%s: %s has no line", row.reason, u.Fault.Path)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if len(report.Counterexamples) > 0 {
				t.Errorf("%s: there are faults: %v", row.reason, report.Counterexamples)
			}
		})
	}
}
