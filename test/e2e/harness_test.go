package e2e

import (
	"testing"

	"operetta.dev/test/harness"
)

// env is the namespace of a test, with what only the tests of this package ask of one.
type env struct{ *harness.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{harness.NewEnv(t)}
}

// testPackage is a package of one test, with what only the tests of this package do to one.
type testPackage struct{ *harness.TestPackage }

func newTestPackage(t *testing.T, name, body string) *testPackage {
	t.Helper()
	return &testPackage{harness.NewTestPackage(t, name, body)}
}
