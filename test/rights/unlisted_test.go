package rights

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// rulesOf are the rights of an operator for the packages with editedBody.
func rulesOf(of ...*harness.TestPackage) []any {
	out := []any{harness.Rule("", harness.WriteVerbs, "configmaps")}
	for _, p := range of {
		out = append(out, p.RequiredRules()...)
	}
	return out
}

// expectReadyWithin waits until a resource is ready, with a text in its ConfigMap.
func expectReadyWithin(s *harness.Env, what string, cr *unstructured.Unstructured, text string) {
	s.T.Helper()
	took := harness.Within(s.T, recoveredWithin, what, func() error {
		u, err := harness.GetOrNil(s.T.Context(), cr)
		if err != nil {
			return err
		}
		return harness.Ready(u)
	})
	s.ExpectData("edited-"+cr.GetName(), "text", text)
	s.T.Logf("%s: after %s", what, took)
}

// expectNotReady waits until a process says that a kind keeps it from being ready.
func expectNotReady(o *harness.Operator, kind string) {
	o.T.Helper()
	harness.Eventually(o.T, "/readyz/caches to name "+kind, func() error {
		code, text := o.ProbeText("readyz/caches")
		if code != http.StatusInternalServerError || !harness.ContainsAll(text, []string{kind, "forbidden"}) {
			return fmt.Errorf("it is %d: %s", code, text)
		}
		return nil
	})
	if code := o.Probe("readyz"); code != http.StatusInternalServerError {
		o.T.Errorf("/readyz is %d", code)
	}
}

func expectReady(o *harness.Operator) {
	o.T.Helper()
	harness.Eventually(o.T, "/readyz to be 200", func() error {
		if code, text := o.ProbeText("readyz/caches"); code != http.StatusOK {
			return fmt.Errorf("it is %d: %s", code, text)
		}
		return nil
	})
}

func TestF37APackageWithoutRightsKeepsNoOtherOfItsProcessFromWorking(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	may, lacks := harness.NewTestPackage(t, "listsmay", editedBody), harness.NewTestPackage(t, "listslack", editedBody)
	if err := harness.InstallCRDs(t.Context(), may.Dir, lacks.Dir); err != nil {
		t.Fatal(err)
	}
	role := s.RestrictOperator(rulesOf(may)...)
	start := func() *harness.Operator {
		return s.StartOperator(lacks.Dir, may.Dir, "--crds=leave", harness.Alone, "--health-probe-bind-address", harness.AnyPort)
	}
	o := start()
	o.ExpectLog(lacks.Name+".example.com", "a kind cannot be read", "forbidden")
	waits := s.Create(lacks.Thing(s, "waits", nil))
	served := s.Create(may.Thing(s, "served", nil))
	expectReadyWithin(s, "the package with rights to serve", served, "a")
	expectNotReady(o, "Thing."+lacks.Name+".example.com")

	o.Stop()
	o = start()
	s.Patch(served, harness.Spec(map[string]any{"text": "b"}))
	expectReadyWithin(s, "the package with rights to serve after a restart", served, "b")
	expectNotReady(o, "Thing."+lacks.Name+".example.com")

	s.Patch(role, map[string]any{"rules": rulesOf(may, lacks)})
	expectReadyWithin(s, "the other one to serve once it may", waits, "a")
	expectReady(o)
}
