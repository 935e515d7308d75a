package registry_test

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/registry"
	"operetta.dev/engine/signature"
	"operetta.dev/test/registrytest"
)

var update = flag.Bool("update", false, "write what cosign has signed into the test data of engine/signature")

// cosignPassword is the password of the keys that cosign makes here.
const cosignPassword = "of-the-test"

// cosign runs the stock cosign, which a module of its own pins. It takes ten minutes to build, so this is for make test-long.
func cosign(t *testing.T, r *registrytest.Registry, dir string, args ...string) string {
	t.Helper()
	if os.Getenv("OPERETTA_TEST_LONG") == "" {
		t.Skip("cosign takes minutes to build; OPERETTA_TEST_LONG=yes runs it, and what it has signed is in the test data of engine/signature")
	}
	path, err := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "..", "test", "cosign"), "tool", "-n", "cosign").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), args...)
	cmd.Dir, cmd.Env = dir, append(r.Env(t), "COSIGN_PASSWORD="+cosignPassword)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// offline are the flags by which cosign asks nobody but the registry.
func offline(command string) []string {
	out := []string{command, "--allow-http-registry"}
	if command == "verify" {
		return append(out, "--insecure-ignore-tlog=true", "--private-infrastructure=true")
	}
	return append(out, "--yes", "--tlog-upload=false", "--use-signing-config=false")
}

func TestCosignAndOperettaVerifyWhatTheOtherHasSigned(t *testing.T) {
	t.Parallel()
	r, dir := published(t), t.TempDir()
	cosign(t, r, dir, "generate-key-pair")
	private, public := read(t, dir, "cosign.key"), read(t, dir, "cosign.pub")
	key, err := signature.ParseKey(public)
	if err != nil {
		t.Fatal(err)
	}
	fixture := &txtar.Archive{Comment: []byte("What cosign has signed. OPERETTA_TEST_LONG=yes go test ./engine/registry -run Cosign -update writes it.\n"), Files: []txtar.File{
		{Name: "cosign.key", Data: []byte(private)}, {Name: "cosign.pub", Data: []byte(public)},
	}}
	client := registry.New(registry.Options{Env: r.Env(t)})
	for name, flags := range map[string][]string{"a tag": {"--new-bundle-format=false"}, "a bundle": nil} {
		repo := "example.com/" + strings.ReplaceAll(name, " ", "")
		digest := r.Publish(t, repo+"@v0.1.0", strings.ReplaceAll(base, "example.com/base@v1", repo+"@v0"))
		from := registry.Source{Reference: r.Host + "/" + repo + ":v0.1.0", Credentials: []byte(r.DockerConfig()), Keys: signature.Keys{key}}
		if _, err := client.Fetch(t.Context(), from); err == nil {
			t.Fatalf("%s: it was fetched before it was signed", name)
		}
		cosign(t, r, dir, slices.Concat(offline("sign"), flags, []string{"--key", "cosign.key", r.Host + "/" + repo + "@" + digest})...)
		if _, err := client.Fetch(t.Context(), from); err != nil {
			t.Errorf("cosign has signed it by %s: %v", name, err)
		}
		fixture.Files = append(fixture.Files, signedBy(t, r, repo, digest)...)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("..", "signature", "testdata", "cosign.txtar"), txtar.Format(fixture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// And the other way round, with the key that cosign has encrypted, beside the signature of another one.
	folder := moduleDir(t, "self")
	packed, err := registry.Pack(t.Context(), folder, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	to := ociref.Reference{Host: r.Host, Repository: "example.com/ops", Tag: "v0.1.0"}
	digest, err := client.Push(t.Context(), packed, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []struct{ private, password string }{{registrytest.NewKey(t).Private, ""}, {private, cosignPassword}} {
		signer, err := signature.ParseSigner([]byte(text.private), []byte(text.password))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Sign(t.Context(), packed, to, digest, signer); err != nil {
			t.Fatal(err)
		}
	}
	out := cosign(t, r, dir, append(offline("verify"), "--key", "cosign.pub", to.String())...)
	if !strings.Contains(out, digest) {
		t.Errorf("%s", out)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// signedBy returns what a registry has of the signatures of an artifact, as files.
func signedBy(t *testing.T, r *registrytest.Registry, repo, digest string) []txtar.File {
	t.Helper()
	of := signature.Artifact{Repository: r.Host + "/" + repo, Digest: digest}
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	text := func(m ociregistry.Manifest) string {
		blob, err := r.Store.GetBlob(t.Context(), repo, m.Layers[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(blob)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	manifest := func(blob ociregistry.BlobReader, err error) ociregistry.Manifest {
		var m ociregistry.Manifest
		if err == nil {
			err = json.NewDecoder(blob).Decode(&m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	name := filepath.Base(repo)
	out := []txtar.File{{Name: name + "/artifact.json", Data: append(data, '\n')}}
	for desc, err := range r.Store.Referrers(t.Context(), repo, ociregistry.Digest(digest), "") {
		if err != nil {
			t.Fatal(err)
		}
		return append(out, txtar.File{Name: name + "/bundle.json", Data: []byte(text(manifest(r.Store.GetManifest(t.Context(), repo, desc.Digest))) + "\n")})
	}
	m := manifest(r.Store.GetTag(t.Context(), repo, of.Tag()))
	return append(out, txtar.File{Name: name + "/payload.json", Data: []byte(text(m) + "\n")}, txtar.File{Name: name + "/signature", Data: []byte(m.Layers[0].Annotations[signature.Annotation] + "\n")})
}
