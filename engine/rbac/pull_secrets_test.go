package rbac_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/rbac"
)

func TestTheOperatorReadsTheNamedPullSecretsOfItsNamespaceAlone(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][]string{"none": nil, "two": {"one", "other"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []rbac.Permission
			for _, p := range rbac.Permissions(nil, nil, nil, rbac.Options{OperatorNamespace: "operators", ServiceAccount: "operetta", PackageObjects: true, PullSecrets: secrets}) {
				if p.Resource == "secrets" {
					got = append(got, p)
				}
			}
			var want []rbac.Permission
			for _, secret := range secrets {
				want = append(want, rbac.Permission{Namespace: "operators", Resource: "secrets", Name: secret, Verb: "get"})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
