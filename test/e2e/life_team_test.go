package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// team returns the sample under the name of the site's namespace: those of the team's
// namespaces are made of it, and no two tests may have the same.
func (s *site) team() *unstructured.Unstructured {
	s.t.Helper()
	u := s.sample("team")
	u.SetName(s.namespace)
	return u
}

// teams returns an object of one of the team's namespaces.
func (s *site) teams(env, kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	version, ok := map[string]string{"RoleBinding": "rbac.authorization.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "ResourceQuota": "v1"}[kind]
	if !ok {
		return object("v1", "Namespace", "", s.namespace+"-"+env)
	}
	return object(version, kind, s.namespace+"-"+env, name)
}

// subjects returns the names of those whom a RoleBinding is about.
func subjects(u *unstructured.Unstructured) []string {
	var out []string
	list, _ := field(u, "subjects").([]any)
	for _, subject := range list {
		out = append(out, subject.(map[string]any)["name"].(string))
	}
	return out
}

func TestATeamFromItsFirstNamespaceToItsDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(fixture("team"))
	cr := s.team()
	s.live(
		step{"it is ready with one write for each object of each namespace", func(s *site) {
			s.expectBudget(func() { s.create(cr.DeepCopy()); s.expectAllReady(cr) }, cr)
			s.expectThat(s.teams("prod", "NetworkPolicy", "same-namespace"), "to exist", exists)
			if u, err := read(s.t.Context(), s.teams("dev", "NetworkPolicy", "same-namespace")); u != nil || err != nil {
				s.t.Errorf("a namespace that is open to others has a policy (error %v)", err)
			}
		}},
		step{"a namespace comes with what belongs in it, and goes with that", func(s *site) {
			s.patch(cr, spec(map[string]any{"environments": map[string]any{"stage": map[string]any{"pods": 3}}}))
			s.expectAllReady(cr)
			s.expectThat(s.teams("stage", "RoleBinding", "team-edit"), "to exist", exists)
			s.patch(cr, spec(map[string]any{"environments": map[string]any{"stage": nil}}))
			s.expectAllReady(cr)
			s.expectGone(s.teams("stage", "Namespace", ""))
			s.expectThat(s.teams("dev", "RoleBinding", "team-edit"), "to exist", exists)
		}},
		step{"people join, change and leave everywhere", func(s *site) {
			s.expectWritten(s.expectBudget(func() {
				s.patch(cr, spec(map[string]any{"users": []any{
					map[string]any{"name": "ada", "role": "admin"}, map[string]any{"name": "grace", "role": "admin"}, map[string]any{"name": "alan", "role": "edit"},
				}}))
				s.expectAllReady(cr)
			}, cr), "rolebindings", "rolebindings", "rolebindings", "rolebindings")
			for role, want := range map[string][]string{"admin": {"ada", "grace"}, "edit": {"alan"}} {
				if diff := cmp.Diff(want, subjects(s.expectThat(s.teams("prod", "RoleBinding", "team-"+role), "to exist", exists))); diff != "" {
					s.t.Errorf("%s (-want +got):\n%s", role, diff)
				}
			}
			s.patch(cr, spec(map[string]any{"users": []any{map[string]any{"name": "ada", "role": "admin"}}}))
			s.expectAllReady(cr)
			s.expectGone(s.teams("prod", "RoleBinding", "team-edit"))
		}},
		step{"one person twice is refused at once", func(s *site) {
			s.expectRefused(cr, spec(map[string]any{"users": []any{map[string]any{"name": "ada"}, map[string]any{"name": "ada"}}}), "spec.users[1]", "Duplicate")
		}},
		step{"nobody gets more than the team has by hand", func(s *site) {
			s.expectUndone(s.teams("prod", "RoleBinding", "team-admin"), map[string]any{"subjects": []any{
				map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"},
			}})
			s.expectUndone(s.teams("prod", "ResourceQuota", "team"), spec(map[string]any{"hard": map[string]any{"pods": "10k"}}))
			s.expectUndone(s.teams("prod", "NetworkPolicy", "same-namespace"), spec(map[string]any{"ingress": []any{map[string]any{}}}))
			s.expectUndone(s.teams("prod", "Namespace", ""), map[string]any{"metadata": map[string]any{"labels": map[string]any{"teams.example.com/team": "others"}}})
			s.expectRestored(s.teams("dev", "ResourceQuota", "team"))
		}},
		step{"a namespace that somebody deletes is back with all that was in it", func(s *site) {
			s.expectRestored(s.teams("dev", "Namespace", ""))
			s.expectAllReady(cr)
			for _, u := range s.objectsOf(cr) {
				s.expectThat(u, "to exist", exists)
			}
		}},
		step{"a namespace of somebody else is left alone, and named", func(s *site) {
			theirs := s.create(s.teams("theirs", "Namespace", ""))
			s.patch(cr, spec(map[string]any{"environments": map[string]any{"theirs": map[string]any{}, "mine": map[string]any{}}}))
			s.t.Log(s.expectNotReady(cr, "OwnedByAnother", "namespace-theirs: ", "Namespace "+theirs.GetName()))
			s.expectThat(s.teams("mine", "ResourceQuota", "team"), "to exist", exists)
			if u, err := read(s.t.Context(), s.teams("theirs", "ResourceQuota", "team")); u != nil || err != nil {
				s.t.Errorf("there is a quota in it (error %v)", err)
			}
			s.patch(cr, spec(map[string]any{"environments": map[string]any{"theirs": nil}}))
			s.expectAllReady(cr)
			s.expectThat(theirs, "to be left alone", exists)
			s.delete(theirs)
		}},
		step{"it goes, what is in a namespace before the namespace", func(s *site) {
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr})
			s.expectBefore(order, "rolebindings team-admin", "namespaces "+s.namespace+"-prod")
			s.expectBefore(order, "resourcequotas team", "namespaces "+s.namespace+"-dev")
		}},
	)
}

func TestATeamWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expectSurvived(s.team(), 5, 4, nil, fixture("team"))
}
