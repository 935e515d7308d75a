package rights

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// secretBody renders a Secret, of which no message may quote anything.
const secretBody = `
#Spec: {text: string | *"a", on: bool | *true}

components: token: {
	when: cr.spec.on
	objects: secret: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "token-\(cr.metadata.name)"
		stringData: text: "hidden-\(cr.spec.text)"
	}
}
components: other: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other-\(cr.metadata.name)"}
`

// What the API server says about a Secret is withheld, as it may quote it. The permission that is missing is named all the same.
func TestF37AMissingPermissionForASecretIsNamedAndMissedNoLonger(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		verb            string
		needs           func(*harness.Env, *unstructured.Unstructured)
		condition, says string
	}{
		"create": {"create", nil, "ApplyFailed", `cannot create or patch resource "secrets"`},
		"patch":  {"patch", changing(map[string]any{"text": "b"}), "ApplyFailed", `cannot create or patch resource "secrets"`},
		"delete": {"delete", changing(map[string]any{"on": false}), "DeleteFailed", `cannot delete resource "secrets"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			p := harness.NewTestPackage(t, "secret"+name, secretBody)
			whole := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps", "secrets"))
			role := s.RestrictOperator(whole...)
			less := missing{verb: row.verb, resource: "secrets"}.without(t, s.ExpectObject(role, "to exist", harness.Exists).Object["rules"].([]any))
			if row.needs == nil {
				s.Patch(role, map[string]any{"rules": less})
			}
			o := s.StartRestrictedOperator(p)
			cr := s.Create(p.Thing(s, "shop", nil))
			if row.needs != nil {
				s.ExpectResourceReady(cr)
				s.Patch(role, map[string]any{"rules": less})
				row.needs(s, cr)
			}
			took := harness.Within(t, namedWithin, "the permission to be named", func() error {
				u, err := harness.GetOrNil(t.Context(), cr)
				if err != nil || u == nil {
					return fmt.Errorf("reading it: %w", err)
				}
				return harness.HasCondition(u, "Ready", "False", row.condition, row.says)
			})
			t.Logf("named after %s", took.Round(time.Millisecond))
			expectRecovery(t, s, role, whole, cr)
			if strings.Contains(o.Log.From(0), "hidden-") {
				t.Error("the log has the content of the Secret")
			}
		})
	}
}
