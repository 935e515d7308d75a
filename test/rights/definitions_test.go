package rights

import (
	"slices"
	"testing"

	"operetta.dev/test/harness"
)

// The roles name the definitions that the operator may create, and a request that creates an object has no name to be compared:
// only an apply has.
func TestAnOperatorMakesItsDefinitionsByTheRolesThatNameThem(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "madebyrole", limitedBody)
	account := s.Namespace + "/operator"
	apply(t, operetta(t, "rbac", p.Dir, "--service-account", account, "--leader-election-id="))
	s.ActAsAccount(s.Namespace + "/operator")
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	from := harness.MarkAudit(t)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	definition := s.ExpectObject(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.madebyrole.example.com"), "to exist", harness.Exists)
	t.Cleanup(func() { harness.RemoveForGood(t, definition) })
	s.ExpectResourceReady(s.Create(p.Thing(s, "shop", nil)))
	for _, e := range s.RequestsOf(from, s.User).Writes() {
		if e.Code == 403 && slices.Contains([]string{"customresourcedefinitions", "things"}, e.Resource) {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
}
