package rights

import (
	"fmt"
	"net/http"
	"strings"
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

func TestF37APackageObjectWithoutRightsKeepsNoOtherFromWorking(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	s.InstallEngineDefinitions()
	lacks, may := s.NewPackageObject("objectslack"), s.NewPackageObject("objectsmay")
	later, gone := s.NewPackageObject("objectslater"), s.NewPackageObject("objectsgone")
	role := s.RestrictOperator(rulesOf(may.TestPackage)...)
	s.GrantEverywhere(s.User,
		harness.Rule("apiextensions.k8s.io", []any{"get", "list", "create", "patch"}, "customresourcedefinitions"),
		harness.Rule("operetta.dev", harness.WriteVerbs, "packages", "packages/status", "packagerevisions", "overlays"))
	o := s.StartPackageOperator(harness.Alone, "--health-probe-bind-address", harness.AnyPort)
	for _, p := range []*harness.PackageObject{lacks, may} {
		p.Apply(p.InlineBody(editedBody))
	}
	lacks.Expect("Ready", "False", "RightsMissing", `cannot list resource "things" in API group "objectslack.example.com"`, "operetta rbac")
	may.Expect("Ready", "True", "Served")
	served := s.Create(may.Thing(s, "served", nil))
	expectReadyWithin(s, "the Package with rights to serve", served, "a")
	expectNotReady(o, "Thing.objectslack.example.com")

	later.Apply(later.InlineBody(editedBody))
	later.Expect("Ready", "False", "RightsMissing", "objectslater.example.com")
	s.Patch(role, map[string]any{"rules": rulesOf(may.TestPackage, later.TestPackage)})
	later.Expect("Ready", "True", "Served")
	expectReadyWithin(s, "one that gets its rights to serve", s.Create(later.Thing(s, "later", nil)), "a")

	if strings.Contains(o.Log.From(0), "a reconcile is slow") {
		t.Error("a worker waits for what is refused")
	}
	o.Stop()
	o = s.StartPackageOperator(harness.Alone, "--health-probe-bind-address", harness.AnyPort)
	s.Patch(served, harness.Spec(map[string]any{"text": "b"}))
	expectReadyWithin(s, "the Package with rights to serve after a restart", served, "b")
	lacks.Expect("Ready", "False", "RightsMissing", "objectslack.example.com")
	waits := s.Create(lacks.Thing(s, "waits", nil))

	s.Patch(role, map[string]any{"rules": rulesOf(may.TestPackage, later.TestPackage, lacks.TestPackage)})
	lacks.Expect("Ready", "True", "Served")
	expectReadyWithin(s, "the other one to serve once it may", waits, "a")
	expectReady(o)

	gone.Apply(gone.InlineBody(editedBody))
	gone.Expect("Ready", "False", "RightsMissing", "objectsgone.example.com")
	expectNotReady(o, "Thing.objectsgone.example.com")
	harness.RemoveForGood(t, gone.Ref())
	expectReady(o) // nobody serves the kind any more, and it was never listed
}
