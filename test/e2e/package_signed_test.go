package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/test/harness"
	"operetta.dev/test/registrytest"
)

// policyFile writes a file for --require-signatures that asks for a key.
func policyFile(t *testing.T, host string, key registrytest.Key) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	text := "repositories:\n- match: " + host + "/**\n  keys:\n  - |\n    " + strings.ReplaceAll(key.Public, "\n", "\n    ") + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPackageIsServedOnlyIfItIsSigned(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	r := registrytest.New(t, true)
	key, other := registrytest.NewKey(t), registrytest.NewKey(t)
	p := s.NewPackageObject("objsigned")
	const repo = "example.com/ops"
	first := r.Publish(t, repo+"@v0.1.0", noteModule(p, "a"))
	signed := "--require-signatures=" + policyFile(t, r.Host, key)
	o := s.StartPackageOperator(signed)
	oci := func(tag string, keys ...any) map[string]any {
		out := map[string]any{"reference": r.Host + "/" + repo + ":" + tag, "path": p.Name}
		if keys != nil {
			out["verify"] = map[string]any{"keys": keys}
		}
		return map[string]any{"source": map[string]any{"oci": out}}
	}
	p.Apply(p.Object(oci("v0.1.0")))
	p.Expect("Ready", "False", "Unsigned", "it has no signature of "+first, "nothing is served")
	// Nor is it served by a key that the Package brings, or as an object of the cluster.
	r.Sign(t, other, repo, first)
	p.Apply(p.Object(oci("v0.1.0", other.Public)))
	p.Expect("Ready", "False", "SignatureInvalid", "none is by one of the other keys that are demanded", "nothing is served")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "False", "SourceNotAllowed", "nothing is served")

	r.Sign(t, key, repo, first)
	p.Apply(p.Object(oci("v0.1.0", key.Public)))
	u := p.Expect("Ready", "True", "Served")
	served := harness.Field(u, "status", "digest")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "b"}))
	s.ExpectResourceReady(cr)
	s.ExpectData("note-shop", "version", "a")

	// The next version is not signed, and changes nothing.
	r.Publish(t, repo+"@v0.2.0", noteModule(p, "evil"))
	p.Apply(p.Object(oci("v0.2.0", key.Public)))
	p.Expect("Ready", "False", "Unsigned", " is served")
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectData("note-shop", "version", "a")

	// What was verified outlives the registry, and an operator that demands another key does not serve it.
	o.Stop()
	r.Stop()
	o = s.StartPackageOperator(signed)
	u = p.Expect("Ready", "False", "RegistryUnavailable", " is served")
	if got := harness.Field(u, "status", "digest"); got != served {
		t.Errorf("%v is served, not %v", got, served)
	}
	o.Stop()
	s.StartPackageOperator("--require-signatures=" + policyFile(t, r.Host, other))
	p.Expect("Ready", "False", "RegistryUnavailable", "was not verified by the keys that are demanded now", "nothing is served")
	s.Patch(cr, harness.Spec(map[string]any{"text": "d"}))
	s.ExpectObject(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return isReportedBroken(u, "RegistryUnavailable") })
	s.ExpectData("note-shop", "text", "c")
}
