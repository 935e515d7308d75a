package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// transition matches the phases in a line of the log.
var transition = regexp.MustCompile(`msg=phase .*from="?(\w*)"? to=(\w+)`)

// A resource that is reconciled often says each thing once in the log, however often it is true.
func TestEachTransitionOfAResourceIsOneLineOfTheLog(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "loggedonce", measuredBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "slow", map[string]any{}))
	s.ExpectNotReady(cr, "NotReady", "gate")
	again := func(times int) {
		t.Helper()
		for i := range times {
			word := fmt.Sprint(s.Get("ConfigMap", "slow-gate").GetResourceVersion(), "-", i)
			s.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", word))
			s.ExpectObject(cr, "to be reconciled again", func(u *unstructured.Unstructured) error {
				if harness.Field(u, "status", "lastHandledReconcileAt") != word {
					return harness.ErrNotYet
				}
				return nil
			})
		}
	}
	counted := func() map[string]int {
		out := map[string]int{}
		for line := range harness.Lines(o.Log.From(0), "msg=phase") {
			if found := transition.FindStringSubmatch(line); found != nil {
				out[found[1]+" to "+found[2]]++
			} else {
				t.Errorf("the line says no phases: %s", line)
			}
		}
		return out
	}
	expect := func(when string, want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, counted()); diff != "" {
			t.Errorf("the lines of the log %s (-want +got):\n%s", when, diff)
		}
	}
	again(5)
	expect("while it waits", map[string]int{" to Created": 1, "Created to Waiting": 1})

	open := func(data string) {
		t.Helper()
		s.Patch(s.Ref("ConfigMap", "slow-gate"), map[string]any{"data": map[string]any{"open": data}})
	}
	open("yes")
	s.ExpectResourceReady(cr)
	again(5)
	expect("while it is ready", map[string]int{" to Created": 1, "Created to Waiting": 1, "Waiting to Ready": 1})

	open("no")
	s.ExpectNotReady(cr, "NotReady", "gate")
	open("yes")
	s.ExpectResourceReady(cr)
	again(1) // the line comes after the status
	expect("after it was not ready for a while", map[string]int{" to Created": 1, "Created to Waiting": 1, "Waiting to Ready": 2, "Ready to Waiting": 1})
}
