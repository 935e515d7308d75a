package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// platformPackages are the packages of a platform and of its parts.
func platformPackages() []string {
	return []string{fixture("platform"), fixture("team"), fixture("postgres"), harness.PackageDir("webapp")}
}

// platform returns the sample under the name of the test's namespace, for the same
// reason as a team.
func (s *env) platform() *unstructured.Unstructured {
	s.T.Helper()
	u := s.sample("platform")
	u.SetName(s.Namespace)
	return u
}

// partsOf returns the resources that a platform consists of.
func (s *env) partsOf(cr *unstructured.Unstructured, apps ...string) []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{
		harness.Object("teams.example.com/v1", "Team", s.Namespace, cr.GetName()),
		harness.Object("databases.example.com/v1", "Postgres", s.Namespace, cr.GetName()),
	}
	for _, app := range apps {
		out = append(out, s.Ref("WebApp", cr.GetName()+"-"+app))
	}
	return out
}

func TestAPlatformOfATeamADatabaseAndAppsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(platformPackages()...)
	cr := s.platform()
	parts := s.partsOf(cr, "cart", "search")
	team, database, cart, search := parts[0], parts[1], parts[2], parts[3]
	secret := s.Ref("Secret", cr.GetName()+"-credentials")
	s.live(
		step{"it is ready with all its parts, and one write for each object of theirs", func(s *env) {
			s.expectBudget(func() { s.Create(cr.DeepCopy()); s.ExpectResourceReady(cr) }, append(parts, cr)...)
			if got, want := harness.Field(s.ExpectResourceReady(cart), "spec", "env", "DATABASE_HOST"), cr.GetName()+"-primary."+s.Namespace+".svc"; got != want {
				s.T.Errorf("the application is told %v, not %s", got, want)
			}
		}},
		step{"an application is scaled, and no other part is touched", func(s *env) {
			s.expectWritten(s.expectBudget(func() {
				s.Patch(cr, harness.Spec(map[string]any{"apps": map[string]any{"cart": map[string]any{"replicas": 4}}}))
				s.ExpectResourceReady(cr)
			}, cr, cart), "deployments")
		}},
		step{"a version of the database is raised through it, and not taken back", func(s *env) {
			s.Patch(cr, harness.Spec(map[string]any{"database": map[string]any{"version": 17}}))
			s.ExpectResourceReady(cr)
			s.ExpectObject(s.Ref("StatefulSet", cr.GetName()+"-replica"), "to be of the new version", ofImage("postgres:17"))
		}},
		step{"an application comes, another goes", func(s *env) {
			s.Patch(cr, harness.Spec(map[string]any{"apps": map[string]any{"search": nil, "mail": map[string]any{"image": "mail:1"}}}))
			s.ExpectResourceReady(cr)
			s.ExpectGone(search)
			s.ExpectGone(s.Ref("Deployment", search.GetName()))
			s.ExpectResourceReady(s.Ref("WebApp", cr.GetName()+"-mail"))
		}},
		step{"what a part lacks is said at the top in the part's own words", func(s *env) {
			theirs := s.Create(harness.Object("v1", "Namespace", "", s.Namespace+"-theirs"))
			s.Patch(cr, harness.Spec(map[string]any{"environments": []any{"dev", "prod", "theirs"}}))
			s.T.Log(s.ExpectNotReady(cr, "ObjectFailed", "team: ", "namespace-theirs: ", "Namespace "+theirs.GetName()))
			s.Delete(theirs)
			s.Patch(cr, harness.Spec(map[string]any{"environments": []any{"dev", "prod"}}))
			s.ExpectResourceReady(cr)
		}},
		step{"a part that somebody changes or deletes is as before, with all its objects", func(s *env) {
			s.expectUndone(cart, harness.Spec(map[string]any{"replicas": 1}))
			s.expectUndone(database, harness.Spec(map[string]any{"replicas": 0}))
			s.expectRestored(cart)
			s.expectRestored(team)
			s.ExpectResourceReady(cr)
			for _, u := range s.objectsOf(cart) {
				s.ExpectObject(u, "to exist", harness.Exists)
			}
		}},
		step{"it goes from the applications to the team, with all their objects", func(s *env) {
			var objects []*unstructured.Unstructured
			for _, part := range s.partsOf(cr, "cart", "mail") {
				objects = append(objects, s.objectsOf(part)...)
			}
			order := s.expectNothingLeft([]*unstructured.Unstructured{cr})
			s.expectBefore(order, "webapps "+cart.GetName(), "postgreses "+cr.GetName(), "statefulsets "+cr.GetName()+"-replica", "teams "+cr.GetName(), "namespaces "+cr.GetName()+"-prod")
			for _, u := range objects {
				if identity(u) != identity(secret) {
					s.ExpectGone(u)
				}
			}
			s.ExpectObject(secret, "to be kept", harness.Exists)
		}},
	)
}

func TestAPlatformWhoseOperatorIsKilledIsWholeAndGoesWhole(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	cr := s.platform()
	s.expectSurvived(cr, 8, 4, nil, platformPackages()...)
	for _, part := range s.partsOf(cr, "cart", "search") {
		s.ExpectGone(part)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "Service", "ConfigMap"} {
		s.expectNoneOwned(kind)
	}
}
