package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// A transition is a line of the log about the phase of a resource.
type transition struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`
	Package string    `json:"package"`
	Thing   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"Thing"`
	From  string `json:"from"`
	To    string `json:"to"`
	Trace string `json:"trace"`
}

// traceID is that of a trace of OpenTelemetry.
var traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// A resource that is reconciled often says each thing once in the log, however often it is true. Each line in JSON has the name of the
// resource and the trace of the reconcile as keys.
func TestEachTransitionOfAResourceIsOneLineOfTheLog(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "loggedonce", measuredBody)
	_, collector := startCollector(t)
	o := s.StartOperator(p.Dir, "--log=json", "--otlp-endpoint", collector)
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
		for line := range harness.Lines(o.Log.From(0), `"msg":"phase"`) {
			var is transition
			if err := json.Unmarshal([]byte(line), &is); err != nil {
				t.Fatalf("the line is not JSON: %v: %s", err, line)
			}
			out[is.From+" to "+is.To]++
			if is.Thing.Name != "slow" || is.Thing.Namespace != s.Namespace || is.Package != p.Name || is.Level != "INFO" || is.Time.IsZero() || !traceID.MatchString(is.Trace) {
				t.Errorf("the line lacks a key: %s", line)
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
	again(1) // the line comes after the status
	position := len(o.Log.From(0))
	again(5)
	for line := range harness.Lines(o.Log.From(position), `"slow"`) {
		t.Errorf("at rest, the log says %s", line)
	}
	expect("while it is ready", map[string]int{" to Created": 1, "Created to Waiting": 1, "Waiting to Ready": 1})

	open("no")
	s.ExpectNotReady(cr, "NotReady", "gate")
	open("yes")
	s.ExpectResourceReady(cr)
	again(1) // the line comes after the status
	expect("after it was not ready for a while", map[string]int{" to Created": 1, "Created to Waiting": 1, "Waiting to Ready": 2, "Ready to Waiting": 1})
}
