package render_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

func TestAnObjectHasSeveralNames(t *testing.T) {
	t.Parallel()
	o := program.Object{Name: "main", Identity: object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "default", Name: "shop"}}
	for text, row := range map[string]struct {
		reason string
		want   bool
	}{
		"web":                   {"the component names all of its objects", true},
		"web.main":              {"the names in the package, as in its text", true},
		"web/main":              {"the names in the package, as kubectl separates", true},
		"deployment/shop":       {"kind and name, as in kubectl", true},
		"Deployments.apps/shop": {"kubectl takes the plural and the group, too", true},
		"deploy/shop":           {"so it does the short name of a kind of Kubernetes", true},
		"deploy.apps/shop":      {"and that with a group", true},
		"svc/shop":              {"it is the short name of another kind", false},
		"deployment.batch/shop": {"it is of another group", false},
		"deployment/main":       {"main is its name in the package", false},
		"web.other":             {"the component has no such object", false},
		"deployment":            {"a kind alone is no name", false},
		"":                      {"nothing is named", false},
	} {
		if got := render.IsNamed(text, "web", o); got != row.want {
			t.Errorf("Named(%q) is %v: %s", text, got, row.reason)
		}
	}
}

func TestOnlyAKindOfKubernetesHasAShortName(t *testing.T) {
	t.Parallel()
	o := program.Object{Name: "main", Identity: object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}, Name: "shop"}}
	if render.IsNamed("deploy/shop", "web", o) {
		t.Error("the kind of another group has a short name that nobody has given it")
	}
}
