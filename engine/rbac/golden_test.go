package rbac_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/golden"
)

// TestPermissions derives the permissions of the package of each golden file: everywhere, and for an
// operator of one namespace.
func TestPermissions(t *testing.T) {
	t.Parallel()
	engine := map[rbac.Permission]bool{}
	for _, namespaces := range []object.Namespaces{nil, {"home"}} {
		for _, p := range rbac.Permissions(nil, nil, nil, rbac.Options{Namespaces: namespaces}) {
			engine[p] = true
		}
	}
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
		s, err := source.Loader{}.Module("shop", "", "shop", c.FS("module"))
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Fatal(err)
		}
		uses, faults := vet.Examine(p, nil).Uses()
		if len(faults) > 0 {
			c.Want("faults", faults.Error())
			return
		}
		served := rbac.Package{Uses: uses, Kind: p.GroupVersionKind().GroupKind(), Plural: "shops"}
		for file, namespaces := range map[string]object.Namespaces{"everywhere": nil, "one namespace": {"home"}} {
			var lines []string
			for _, permission := range rbac.Permissions([]rbac.Package{served}, rbac.Plurals{}, nil, rbac.Options{Namespaces: namespaces}) {
				if !engine[permission] {
					lines = append(lines, permission.String())
				}
			}
			c.Want(file, strings.Join(lines, "\n"))
		}
		if diff := cmp.Diff(both(served, "home", "yard"), permissionsIn(served, "home", "yard")); diff != "" {
			c.Errorf("an operator of two namespaces has not the permissions of two operators (-want +got):\n%s", diff)
		}
	})
}

// permissionsIn returns the permissions of an operator of some namespaces.
func permissionsIn(p rbac.Package, namespaces ...string) []string {
	var out []string
	for _, one := range rbac.Permissions([]rbac.Package{p}, rbac.Plurals{}, nil, rbac.Options{Namespaces: namespaces, OperatorNamespace: "ops", LeaderElectionID: "lease"}) {
		out = append(out, one.String())
	}
	slices.Sort(out)
	return out
}

// both returns the permissions of two operators of one namespace each.
func both(p rbac.Package, a, b string) []string {
	out := slices.Concat(permissionsIn(p, a), permissionsIn(p, b))
	slices.Sort(out)
	return slices.Compact(out)
}

func TestAShadowOnlyReads(t *testing.T) {
	t.Parallel()
	kinds := []vet.Use{
		{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Writes: true, Replaces: true, Deletes: true},
		{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Writes: true, Elsewhere: []string{"far"}},
		{GroupKind: schema.GroupKind{Kind: "Secret"}},
	}
	p := rbac.Package{Uses: vet.Uses{Kinds: kinds, Binds: []vet.BoundRole{{Role: "admin"}}}, Kind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, Plural: "shops"}
	o := rbac.Options{Namespaces: object.Namespaces{"home"}, LeaderElectionID: "lease", InstallsCRDs: true, SecureMetrics: true, ConfigMapNamespace: "ops", ConfigMap: "config"}
	operator := rbac.Permissions([]rbac.Package{p}, rbac.Plurals{}, []string{"shops.example.com"}, o)
	o.Shadow = true
	var got []string
	for _, one := range rbac.Permissions([]rbac.Package{p}, rbac.Plurals{}, []string{"shops.example.com"}, o) {
		if !slices.Contains(operator, one) {
			t.Errorf("%s: the operator itself does not need it", one)
		}
		got = append(got, one.String())
	}
	for _, one := range got {
		verb, _, _ := strings.Cut(one, " ")
		if !slices.Contains([]string{"get", "list", "watch"}, verb) {
			t.Errorf("%s: it is no read", one)
		}
	}
	for _, want := range []string{"list shops.example.com in namespace home", "get configmaps in namespace home", "watch deployments.apps in namespace far", "get secrets in namespace home", "get configmaps config in namespace ops"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
}
