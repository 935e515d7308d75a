package rbac_test

import (
	"strings"
	"testing"

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
	for _, namespace := range []string{"", "home"} {
		for _, p := range rbac.Permissions(nil, nil, nil, rbac.Options{Namespace: namespace}) {
			engine[p] = true
		}
	}
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
		s, err := source.New(c.FS("module"), "shop", nil)
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Fatal(err)
		}
		uses, faults := vet.UsesOf(p, nil)
		if len(faults) > 0 {
			c.Want("faults", faults.Error())
			return
		}
		served := rbac.Package{Uses: uses, Kind: p.GroupVersionKind().GroupKind(), Plural: "shops"}
		for file, namespace := range map[string]string{"everywhere": "", "one namespace": "home"} {
			var lines []string
			for _, permission := range rbac.Permissions([]rbac.Package{served}, rbac.Plurals{}, nil, rbac.Options{Namespace: namespace}) {
				if !engine[permission] {
					lines = append(lines, permission.String())
				}
			}
			c.Want(file, strings.Join(lines, "\n"))
		}
	})
}
