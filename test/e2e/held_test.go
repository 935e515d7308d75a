package e2e

import (
	"testing"

	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// A backup that fails blocks the deletion of the database, and so that of the platform, which needs
// another one.
func TestAPartThatCannotBeDeletedSaysWhyAtTheTop(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(platformPackages()...)
	cr := s.platform()
	cr.Object["spec"].(map[string]any)["apps"] = map[string]any{}
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	database := s.partsOf(cr)[1]
	s.Patch(database, harness.Spec(map[string]any{"backup": unschedulableHook}))
	s.ExpectResourceReady(database)
	s.Delete(database)
	t.Log(s.ExpectNotReady(database, "HookFailed", "hooks.beforeDelete.backup: "))
	t.Log(s.ExpectNotReady(cr, "WaitingForDeletion", "database: ", "Postgres "+s.Namespace+"/"+cr.GetName(), "hooks.beforeDelete.backup: "))
	s.Patch(database, harness.Spec(map[string]any{"backup": map[string]any{"enabled": false}}))
	s.ExpectResourceReady(cr)
}
