package object_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

func TestWhatMayBeASecretIsHidden(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		apiVersion string
		kind       any
		is, may    bool
	}{
		"a Secret":                       {"it is one", "v1", "Secret", true, true},
		"a Secret of another version":    {"a later version would hold the same", "v2", "Secret", true, true},
		"a Secret of another group":      {"it may hold as much as one of Kubernetes", "vault.example.com/v1", "Secret", false, true},
		"an object without a kind":       {"it may turn out to be a Secret", "v1", nil, false, true},
		"a kind that is not a text":      {"nothing is known of it", "v1", int64(1), false, true},
		"a ConfigMap":                    {"everybody may read it", "v1", "ConfigMap", false, false},
		"a kind whose name begins alike": {"it is another kind", "v1", "SecretStore", false, false},
	} {
		kind, _ := row.kind.(string)
		if got := object.IsSecret(schema.FromAPIVersionAndKind(row.apiVersion, kind).GroupKind()); got != row.is {
			t.Errorf("%s (%s): IsSecret is %v", name, row.reason, got)
		}
		if got := object.MayBeSecretIn(map[string]any{"apiVersion": row.apiVersion, "kind": row.kind}); got != row.may {
			t.Errorf("%s (%s): MayBeSecretIn is %v", name, row.reason, got)
		}
	}
}
