package rights

import (
	"testing"

	"operetta.dev/test/harness"
)

// The end-to-end suite starts operators by the harness, which gives them the roles that operetta prints and nothing else.
func TestF40OperatorsOfTheSuiteHaveNothingBesideTheRolesThatArePrinted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		start  func(s *harness.Env) *harness.Operator
	}{
		"of the repository": {"the roles of its packages are printed once for all tests", func(s *harness.Env) *harness.Operator {
			return s.StartOperator(harness.PackageDir("webapp"))
		}},
		"of a test": {"some tests ask for the roles of their own package", func(s *harness.Env) *harness.Operator {
			s.UnderPrintedRoles()
			return s.StartOperator(harness.NewTestPackage(s.T, "underroles", editedBody).Dir, harness.PackageDir("webapp"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			o := row.start(s)
			cr := s.Create(s.Webapp("web", map[string]any{"image": "nginx:1.25"}))
			s.ExpectResourceReady(cr)
			s.Kubectl("delete", "rolebindings", "--all")
			s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
			o.ExpectLog("forbidden", s.User, "webapps/status")
		})
	}
}
