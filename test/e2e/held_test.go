package e2e

import "testing"

// TestAPartThatCannotBeDeletedSaysWhyAtTheTop: a backup that fails holds the database, and
// with it the platform that needs another one.
func TestAPartThatCannotBeDeletedSaysWhyAtTheTop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(platformPackages()...)
	cr := s.platform()
	cr.Object["spec"].(map[string]any)["apps"] = map[string]any{}
	s.create(cr.DeepCopy())
	s.expectAllReady(cr)
	database := s.partsOf(cr)[1]
	s.patch(database, spec(map[string]any{"backup": nowhere}))
	s.expectAllReady(database)
	s.delete(database)
	t.Log(s.expectNotReady(database, "HookFailed", "hooks.beforeDelete.backup: "))
	t.Log(s.expectNotReady(cr, "WaitingForDeletion", "database: ", "Postgres "+s.namespace+"/"+cr.GetName(), "hooks.beforeDelete.backup: "))
	s.patch(database, spec(map[string]any{"backup": map[string]any{"enabled": false}}))
	s.expectAllReady(cr)
}
