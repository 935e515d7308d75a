package rights

import (
	"fmt"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// shrunkBody renders a ConfigMap, and a Secret until a version drops that.
const shrunkBody = `
#Spec: text: string | *"a"

components: settings: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "settings-\(cr.metadata.name)"
	data: text: cr.spec.text
}
`

const droppedBody = `
components: token: objects: secret: {
	apiVersion: "v1"
	kind:       "Secret"
	metadata: name: "token-\(cr.metadata.name)"
}
`

// rulesOfShrunk are the rights for a package with that body: those with the resources that it renders.
func rulesOfShrunk(p *harness.TestPackage, resources ...any) []any {
	return append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, resources...))
}

// A version of a package drops a kind, and its roles have no such kind any more.
func TestAKindThatAPackageHasDroppedWithItsRightsHoldsNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "dropsunread", shrunkBody+droppedBody)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	role := s.RestrictOperator(rulesOfShrunk(p, "configmaps", "secrets")...)
	o := s.StartRestrictedOperator(p)
	cr := s.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	o.Stop()

	s.Patch(role, map[string]any{"rules": rulesOfShrunk(p, "configmaps")})
	s.StartRestrictedOperator(harness.NewTestPackage(t, p.Name, shrunkBody))
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("settings-shop", "text", "b")
	took := harness.Within(t, namedWithin, "the permission to be named", func() error {
		u, err := harness.GetOrNil(t.Context(), cr)
		if err != nil || u == nil {
			return fmt.Errorf("reading it: %w", err)
		}
		return harness.HasCondition(u, "Ready", "False", "DeleteFailed", "Secret "+s.Namespace+"/token-shop", `cannot get resource "secrets"`)
	})
	t.Logf("named after %s", took.Round(time.Millisecond))
	s.ExpectObject(s.Ref("Secret", "token-shop"), "to stay", harness.Exists)

	s.Patch(role, map[string]any{"rules": rulesOfShrunk(p, "configmaps", "secrets")})
	took = harness.Within(t, recoveredWithin, "the resource to be ready", func() error {
		u, err := harness.GetOrNil(t.Context(), cr)
		if err != nil {
			return err
		}
		return harness.Ready(u)
	})
	t.Logf("ready %s after the return of the permission", took.Round(time.Millisecond))
	s.ExpectGone(s.Ref("Secret", "token-shop"))
}
