package e2e

import (
	"os"
	"testing"

	"operetta.dev/test/harness"
)

// readsServices is a change that adds an input to a package.
const readsServices = `
inputs: front: {apiVersion: "v1", kind: "Service", name: "front"}
components: base: requires: fronted: inputs.front.object.metadata.name != ""
`

func TestG2DeletionGoesOnWhateverMayNotBeListed(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "blind", layeredBody)
	role := s.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps", "serviceaccounts", "secrets"))...)
	o := s.StartRestrictedOperator(p.TestPackage)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	o.Stop()

	// The operator may get and delete the objects to be deleted, but not list or watch them. It may not
	// even get the input of the new version of the package.
	s.Patch(role, map[string]any{"rules": append(p.RequiredRules(),
		harness.Rule("", harness.WriteVerbs, "configmaps", "serviceaccounts"), harness.Rule("", []any{"get", "delete"}, "secrets"))})
	b, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, p.file(), string(b)+readsServices)
	s.StartOperator(p.Dir, "--crds", "leave")
	from := harness.MarkAudit(t)
	s.Delete(cr)
	s.expectTornDown(cr, layeredKinds...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
}
