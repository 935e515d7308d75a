package e2e

import (
	"os"
	"testing"

	"operetta.dev/test/harness"
)

// readsServices makes a package newer by an input.
const readsServices = `
inputs: front: {apiVersion: "v1", kind: "Service", name: "front"}
components: base: requires: fronted: inputs.front.object.metadata.name != ""
`

func TestG2DeletionGoesOnWhateverMayNotBeListed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "blind", layered)
	role := s.Restrict(append(p.Needs(), harness.Rule("", harness.Writes, "configmaps", "serviceaccounts", "secrets"))...)
	o := s.OperateRestricted(p.Small)
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{"text": "a"}))
	s.ExpectAllReady(cr)
	o.Stop()

	// What is to be deleted can be read and deleted, and not observed; what the newer
	// package reads cannot even be read.
	s.Patch(role, map[string]any{"rules": append(p.Needs(),
		harness.Rule("", harness.Writes, "configmaps", "serviceaccounts"), harness.Rule("", []any{"get", "delete"}, "secrets"))})
	b, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, p.file(), string(b)+readsServices)
	s.Operate(p.Dir, "--crds", "leave")
	from := harness.Mark(t)
	s.Delete(cr)
	s.expectTornDown(cr, layeredKinds...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
}
