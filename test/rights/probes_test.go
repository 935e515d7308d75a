package rights

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"operetta.dev/test/harness"
)

// A process that may not list its kind acts on half of the truth: it is alive, and not ready until somebody gives it the right.
func TestAProcessIsNotReadyWhileItMayNotListItsKind(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "unlisted", editedBody)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	all := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))
	role := s.RestrictOperator(slices.Concat([]any{harness.Rule(p.Name+".example.com", []any{"get", "patch"}, "things")}, all[1:])...)
	o := s.StartOperator(p.Dir, "--crds=leave", harness.Alone, "--health-probe-bind-address", harness.AnyPort)
	expect := func(probe string, code int) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("/%s to be %d", probe, code), func() error {
			if got := o.Probe(probe); got != code {
				return fmt.Errorf("it is %d", got)
			}
			return nil
		})
	}
	o.ExpectLog("things", "forbidden")
	expect("readyz", http.StatusInternalServerError)
	expect("healthz", http.StatusOK)
	s.Patch(role, map[string]any{"rules": all})
	expect("readyz", http.StatusOK)
	s.ExpectResourceReady(s.Create(p.Thing(s, "shop", nil)))
}
