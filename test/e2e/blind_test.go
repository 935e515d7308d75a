package e2e

import (
	"os"
	"testing"
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
	role := s.restrict(append(p.needs(), rule("", writes, "configmaps", "serviceaccounts", "secrets"))...)
	o := s.operateRestricted(p)
	cr := s.create(p.thing(s, "shop", map[string]any{"text": "a"}))
	s.expectAllReady(cr)
	o.stop()

	// What is to be deleted can be read and deleted, and not observed; what the newer
	// package reads cannot even be read.
	s.patch(role, map[string]any{"rules": append(p.needs(),
		rule("", writes, "configmaps", "serviceaccounts"), rule("", []any{"get", "delete"}, "secrets"))})
	b, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, p.file(), string(b)+readsServices)
	s.operate(p.dir, "--crds", "leave")
	from := mark(t)
	s.delete(cr)
	s.expectTornDown(cr, layeredKinds...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
}
