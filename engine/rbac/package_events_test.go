package rbac_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

func TestTheOperatorOfSomeNamespacesSaysWhatHappensToPackages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		namespaces object.Namespaces
		packages   bool
		want       []string
	}{
		"Some":     {"events about what has no namespace are in default", object.Namespaces{"a"}, true, []string{"a", "default"}},
		"Default":  {"it is served anyway", object.Namespaces{"default"}, true, []string{"default"}},
		"All":      {"all namespaces include it", nil, true, []string{""}},
		"NoObject": {"nothing that it serves is without a namespace", object.Namespaces{"a"}, false, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range rbac.Permissions(nil, nil, nil, rbac.Options{OperatorNamespace: "home", ServiceAccount: "op", Namespaces: tc.namespaces, PackageObjects: tc.packages}) {
				if p.Group == "events.k8s.io" && p.Verb == "create" {
					got = append(got, p.Namespace)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
