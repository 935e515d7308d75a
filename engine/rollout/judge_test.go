package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheWorstOfAComponentIsWhatItIs(t *testing.T) {
	t.Parallel()
	const objects = `
components: web: objects: {
	deployment: _deployment & {metadata: name: "web", spec: replicas: 1}
	job: _job & {metadata: name: "migrate"}
}
`
	const (
		waits    = "Deployment NAMESPACE/web: Replicas: 0/1"
		failed   = "Job NAMESPACE/migrate: the Job has failed: BackoffLimitExceeded: it ended"
		starts   = "Job NAMESPACE/migrate: the Job has not started"
		holdsNot = "verify.big: cr.spec.size > 5: is 1, wanted > 5 (shop/body.cue:7)"
	)
	for name, row := range map[string]struct {
		reason          string
		more            string
		available, fail bool
		want, message   string
	}{
		"all wait":                   {"the first one is named", "", false, false, "web: Applied NotReady", waits},
		"one waits":                  {"it is named", "", true, false, "web: Applied NotReady", starts},
		"one waits, and one failed":  {"a failure is not hidden behind what comes first", "", false, true, "web: Failed ObjectFailed", failed},
		"a predicate does not hold":  {"it stands beside what the kind says", "components: web: verify: big: cr.spec.size > 5", false, false, "web: Applied NotReady", waits + "; " + holdsNot},
		"a predicate says it failed": {"the author's word wins over waiting", "components: web: failed: small: cr.spec.size < 5", false, false, "web: Failed ObjectFailed", "failed.small holds: cr.spec.size < 5 (shop/body.cue:7)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, objects+row.more)
			w.mustRun()
			if row.available {
				w.available("web")
			}
			if row.fail {
				w.end("Failed")
			}
			result := w.mustRun()
			expectStates(t, result, row.want)
			if diff := cmp.Diff(strings.ReplaceAll(row.message, "NAMESPACE", w.owner.Namespace), message(result, "web")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
