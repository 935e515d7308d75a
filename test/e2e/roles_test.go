package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// TestAnOperatorOfTheSuiteHasItsRolesAloneAndWhatItLacksIsSeen takes away what the suite gives the operator, and looks for what the suite
// would report.
func TestAnOperatorOfTheSuiteHasItsRolesAloneAndWhatItLacksIsSeen(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "lacking", note("a"))
	s.StartOperator(p.Dir)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "one", map[string]any{})))
	s.WaitUntilIdle()
	if seen := s.Refusals(); len(seen) > 0 {
		t.Errorf("something is refused: %v", seen)
	}

	s.ExpectRefusals("the test takes the permission away")
	var role *unstructured.Unstructured
	for _, u := range s.List("rbac.authorization.k8s.io/v1", "Role") {
		if strings.Contains(u.GetName(), p.Name) {
			role = &u
		}
	}
	if role == nil {
		t.Fatal("the package has no role")
	}
	rules := slices.DeleteFunc(harness.Field(role, "rules").([]any), func(rule any) bool {
		return slices.Contains(rule.(map[string]any)["resources"].([]any), any("configmaps"))
	})
	s.Patch(role, map[string]any{"rules": rules})
	s.ExpectNotReady(s.Create(p.Thing(s.Env, "two", map[string]any{})), "ApplyFailed", "configmaps", "forbidden")
	for _, by := range []string{"the API server has refused: ", "the log says: ", "a condition of Thing two says: "} {
		harness.Eventually(t, by+"...", func() error {
			seen := slices.Collect(maps.Keys(s.Refusals()))
			if !slices.ContainsFunc(seen, func(text string) bool { return strings.HasPrefix(text, by) && strings.Contains(text, s.User) }) {
				return errors.New(fmt.Sprint(seen))
			}
			return nil
		})
	}

	// Without its bindings, nothing is left.
	for _, u := range s.List("rbac.authorization.k8s.io/v1", "RoleBinding") {
		s.Delete(&u)
	}
	harness.Eventually(t, "the operator to be refused its own resources", func() error {
		for text := range s.Refusals() {
			if strings.Contains(text, "things") {
				return nil
			}
		}
		s.Patch(p.Thing(s.Env, "one", nil), harness.Spec(map[string]any{"text": "b"}))
		return harness.ErrNotYet
	})
}
