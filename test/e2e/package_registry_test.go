package e2e

import (
	"encoding/base64"
	"strings"
	"testing"

	"operetta.dev/test/harness"
	"operetta.dev/test/registrytest"
)

// noteModule returns the module of a package with a version of the note.
func noteModule(p *harness.PackageObject, version string) string {
	return "\n-- cue.mod/module.cue --\nmodule: \"example.com/ops@v0\"\nlanguage: version: \"v0.17.0\"\n-- " + p.Name + "/main.cue --\n" + p.Text(note(version))
}

func TestPackageFromARegistryOutlivesTheRegistry(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	r := registrytest.New(t, false)
	p := s.NewPackageObject("objregistry")
	digest := r.Publish(t, "example.com/ops@v0.1.0", noteModule(p, "a"))
	secret := harness.Object("v1", "Secret", s.Namespace, "registry")
	secret.Object["type"] = "kubernetes.io/dockerconfigjson"
	secret.Object["data"] = map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString([]byte(r.DockerConfig()))}
	s.Create(secret)
	opaque := harness.Object("v1", "Secret", s.Namespace, "opaque")
	s.Create(opaque)
	first := s.StartPackageOperator("--pull-secret-namespace", s.Namespace)
	oci := func(tag, pullSecret string) map[string]any {
		return map[string]any{"source": map[string]any{"oci": map[string]any{"reference": r.Host + "/example.com/ops:" + tag, "path": p.Name, "pullSecret": pullSecret}}}
	}
	p.Apply(p.Object(oci("v0.1.0", "opaque")))
	p.Expect("Ready", "False", "SourceUnreadable", "opaque", "kubernetes.io/dockerconfigjson")
	p.Apply(p.Object(oci("v0.1.0", "registry")))
	u := p.Expect("Ready", "True", "Served")
	if got := harness.Field(u, "status", "artifact", "digest"); got != digest {
		t.Errorf("the artifact is %v, want %s", got, digest)
	}
	served := harness.Field(u, "status", "digest")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "b"}))
	s.ExpectResourceReady(cr)
	s.ExpectData("note-shop", "version", "a")

	// The registry is gone, and the operator starts again.
	first.Stop()
	r.Stop()
	o := s.StartPackageOperator("--pull-secret-namespace", s.Namespace)
	u = p.Expect("Ready", "False", "RegistryUnavailable", "connection refused", " is served")
	if got := harness.Field(u, "status", "digest"); got != served {
		t.Errorf("%v is served, not %v", got, served)
	}
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectObject(cr, "to say nothing about its package", isNotReportedBroken)

	// A Package is one of its sources, and the API server says so.
	two := oci("v0.1.0", "registry")
	two["source"].(map[string]any)["inline"] = map[string]any{"main.cue": "package p\n"}
	other := s.NewPackageObject("objtwosources")
	if err := harness.Suite.Admin.Create(t.Context(), other.Object(two)); err == nil {
		harness.RemoveForGood(t, other.Ref())
		t.Error("a Package has two sources")
	}
	for _, p := range []*harness.Operator{first, o} {
		if strings.Contains(p.Log.Tail(10_000), registrytest.Password) {
			t.Error("the password is in the log")
		}
	}
}
