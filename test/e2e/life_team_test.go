package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// team returns the sample under the name of the test's namespace: those of the team's
// namespaces are made of it, and no two tests may have the same.
func (s *env) team() *unstructured.Unstructured {
	s.T.Helper()
	u := s.sample("team")
	u.SetName(s.Namespace)
	return u
}

// teams returns an object of one of the team's namespaces.
func (s *env) teams(env, kind, name string) *unstructured.Unstructured {
	s.T.Helper()
	version, ok := map[string]string{"RoleBinding": "rbac.authorization.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "ResourceQuota": "v1"}[kind]
	if !ok {
		return harness.Object("v1", "Namespace", "", s.Namespace+"-"+env)
	}
	return harness.Object(version, kind, s.Namespace+"-"+env, name)
}

// subjects returns the names of the subjects of a RoleBinding.
func subjects(u *unstructured.Unstructured) []string {
	var out []string
	list, _ := harness.Field(u, "subjects").([]any)
	for _, subject := range list {
		out = append(out, subject.(map[string]any)["name"].(string))
	}
	return out
}

func TestATeamFromItsFirstNamespaceToItsDeletion(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(fixture("team"))
	cr := s.team()
	s.live(
		step{"it is ready with one write for each object of each namespace", func(s *env) {
			s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, cr)
			s.ExpectObject(s.teams("prod", "NetworkPolicy", "same-namespace"), "to exist", harness.Exists)
			if u, err := harness.GetOrNil(s.T.Context(), s.teams("dev", "NetworkPolicy", "same-namespace")); u != nil || err != nil {
				s.T.Errorf("a namespace that is open to others has a policy (error %v)", err)
			}
		}},
		step{"a namespace comes with what belongs in it, and goes with that", func(s *env) {
			s.Patch(cr, harness.Spec(map[string]any{"environments": map[string]any{"stage": map[string]any{"pods": 3}}}))
			s.ExpectResourceReady(cr)
			s.ExpectObject(s.teams("stage", "RoleBinding", "team-edit"), "to exist", harness.Exists)
			s.Patch(cr, harness.Spec(map[string]any{"environments": map[string]any{"stage": nil}}))
			s.ExpectResourceReady(cr)
			s.ExpectGone(s.teams("stage", "Namespace", ""))
			s.ExpectObject(s.teams("dev", "RoleBinding", "team-edit"), "to exist", harness.Exists)
		}},
		step{"people join, change and leave everywhere", func(s *env) {
			s.expectWritten(s.expectBudget(func() {
				s.Patch(cr, harness.Spec(map[string]any{"users": []any{
					map[string]any{"name": "ada", "role": "admin"}, map[string]any{"name": "grace", "role": "admin"}, map[string]any{"name": "alan", "role": "edit"},
				}}))
				s.ExpectResourceReady(cr)
			}, cr), "rolebindings", "rolebindings", "rolebindings", "rolebindings")
			for role, want := range map[string][]string{"admin": {"ada", "grace"}, "edit": {"alan"}} {
				if diff := cmp.Diff(want, subjects(s.ExpectObject(s.teams("prod", "RoleBinding", "team-"+role), "to exist", harness.Exists))); diff != "" {
					s.T.Errorf("%s (-want +got):\n%s", role, diff)
				}
			}
			s.Patch(cr, harness.Spec(map[string]any{"users": []any{map[string]any{"name": "ada", "role": "admin"}}}))
			s.ExpectResourceReady(cr)
			s.ExpectGone(s.teams("prod", "RoleBinding", "team-edit"))
		}},
		step{"one person twice is refused at once", func(s *env) {
			s.expectRefused(cr, harness.Spec(map[string]any{"users": []any{map[string]any{"name": "ada"}, map[string]any{"name": "ada"}}}), "spec.users[1]", "Duplicate")
		}},
		step{"nobody gets more than the team has by hand", func(s *env) {
			s.expectUndone(s.teams("prod", "RoleBinding", "team-admin"), map[string]any{"subjects": []any{
				map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"},
			}})
			s.expectUndone(s.teams("prod", "ResourceQuota", "team"), harness.Spec(map[string]any{"hard": map[string]any{"pods": "10k"}}))
			s.expectUndone(s.teams("prod", "NetworkPolicy", "same-namespace"), harness.Spec(map[string]any{"ingress": []any{map[string]any{}}}))
			s.expectUndone(s.teams("prod", "Namespace", ""), map[string]any{"metadata": map[string]any{"labels": map[string]any{"teams.example.com/team": "others"}}})
			s.expectRestored(s.teams("dev", "ResourceQuota", "team"))
		}},
		step{"a namespace that somebody deletes is back with all that was in it", func(s *env) {
			s.expectRestored(s.teams("dev", "Namespace", ""))
			s.ExpectResourceReady(cr)
			for _, u := range s.objectsOf(cr) {
				s.ExpectObject(u, "to exist", harness.Exists)
			}
		}},
		step{"a namespace of somebody else is left harness.Alone, and named", func(s *env) {
			theirs := s.Create(s.teams("theirs", "Namespace", ""))
			s.Patch(cr, harness.Spec(map[string]any{"environments": map[string]any{"theirs": map[string]any{}, "mine": map[string]any{}}}))
			s.T.Log(s.ExpectNotReady(cr, "OwnedByAnother", "namespace-theirs: ", "Namespace "+theirs.GetName()))
			s.ExpectObject(s.teams("mine", "ResourceQuota", "team"), "to exist", harness.Exists)
			if u, err := harness.GetOrNil(s.T.Context(), s.teams("theirs", "ResourceQuota", "team")); u != nil || err != nil {
				s.T.Errorf("there is a quota in it (error %v)", err)
			}
			s.Patch(cr, harness.Spec(map[string]any{"environments": map[string]any{"theirs": nil}}))
			s.ExpectResourceReady(cr)
			s.ExpectObject(theirs, "to be left alone", harness.Exists)
			s.Delete(theirs)
		}},
		step{"it goes, what is in a namespace before the namespace", func(s *env) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr})
			s.expectBefore(order, "rolebindings team-admin", "namespaces "+s.Namespace+"-prod")
			s.expectBefore(order, "resourcequotas team", "namespaces "+s.Namespace+"-dev")
		}},
	)
}

func TestATeamWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.expectSurvived(s.team(), 5, 4, nil, fixture("team"))
}
