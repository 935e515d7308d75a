package e2e

import (
	"testing"

	"operetta.dev/test/harness"
)

// env is a harness.Env with the helpers of this package.
type env struct{ *harness.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{harness.NewEnv(t)}
}

// startSecure starts an operator that serves metrics to whom the API server allows to read them.
func (s *env) startSecure(args ...string) *harness.Operator {
	s.T.Helper()
	s.WithClusterRoles("operetta rbac lets no operator of some namespaces ask the API server who may read metrics")
	return s.StartOperator(append(args, "--metrics-secure")...)
}

// testPackage is a harness.TestPackage with the helpers of this package.
type testPackage struct{ *harness.TestPackage }

func newTestPackage(t *testing.T, name, body string) *testPackage {
	t.Helper()
	return &testPackage{harness.NewTestPackage(t, name, body)}
}
