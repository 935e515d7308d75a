package registry_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/registry"
	"operetta.dev/schemas"
	"operetta.dev/test/registrytest"
)

// pushed is a module with an operator package that depends on the contract as a module.
const pushed = `
-- cue.mod/module.cue --
module: "example.com/ops@v0"
language: version: "v0.17.0"
source: kind: "SOURCE"
deps: "operetta.dev@v0": v: "v0.1.0"
-- README.md --
More than CUE is part of a module.
-- note/note.cue --
package note

import "operetta.dev/schemas/operator"

operator.#Controller
group: "example.com"
kind:  "Note"
versions: v1: spec: #Spec
#Spec: {}
cr: spec: #Spec
components: note: objects: note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}
`

// run runs a program in a folder.
func run(t *testing.T, dir string, env []string, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cue returns the path of the stock cue command.
func cue(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "cue").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// moduleDir returns a folder with the module, of a kind of source. That of git has one commit.
func moduleDir(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, archive(t, strings.Replace(pushed, "SOURCE", kind, 1))); err != nil {
		t.Fatal(err)
	}
	if kind != "git" {
		return dir
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"}} {
		if out, err := run(t, dir, os.Environ(), "git", args...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func TestThePushedArtifactIsThatOfTheCueCommand(t *testing.T) {
	t.Parallel()
	cue := cue(t)
	for _, kind := range []string{"self", "git"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := registrytest.New(t, false)
			r.PublishTree(t, "operetta.dev@v0.1.0", schemaModule(t))
			env, dir := r.Env(t), moduleDir(t, kind)
			if out, err := run(t, dir, env, cue, "mod", "publish", "v0.1.2"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			theirs := manifest(t, r, "example.com/ops", "v0.1.2")
			p, err := registry.Pack(t.Context(), dir, "v0.1.2")
			if err != nil {
				t.Fatal(err)
			}
			to, err := registry.ParseTarget(r.Host + "/mirror/example.com/ops:v0.1.2")
			if err != nil {
				t.Fatal(err)
			}
			digest, err := registry.New(registry.Options{Env: env}).Push(t.Context(), p, to)
			if err != nil {
				t.Fatal(err)
			}
			ours := manifest(t, r, "mirror/example.com/ops", "v0.1.2")
			if diff := cmp.Diff(theirs, ours); diff != "" { // with the digests of the zip file and of the declaration
				t.Errorf("manifest (-cue +operetta):\n%s", diff)
			}
			d, err := r.Store.ResolveTag(t.Context(), "example.com/ops", "v0.1.2")
			if err != nil || string(d.Digest) != digest {
				t.Errorf("the digest is %s, and that of cue %s: %v", digest, d.Digest, err)
			}
			// Stock cue builds with what was pushed.
			user := t.TempDir()
			files := map[string]string{
				"cue.mod/module.cue": "module: \"example.com/user@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: {\"example.com/ops@v0\": v: \"v0.1.2\", \"operetta.dev@v0\": v: \"v0.1.0\"}\n",
				"x.cue":              "package x\n\nimport \"example.com/ops/note\"\n\nkind: note.kind\n",
			}
			for name, text := range files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(user, name)), 0o700), os.WriteFile(filepath.Join(user, name), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			mirrored := append(r.Env(t), "CUE_REGISTRY=example.com="+r.Host+"/mirror,"+r.Host)
			if out, err := run(t, user, mirrored, cue, "export", "--out", "json", "-e", "kind", "."); err != nil || strings.TrimSpace(out) != `"Note"` {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// schemaModule returns the schemas as a module for the cue command.
func schemaModule(t *testing.T) fs.FS {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(os.CopyFS(dir, schemas.Full()), os.MkdirAll(filepath.Join(dir, "cue.mod"), 0o700),
		os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte("module: \"operetta.dev@v0\"\nlanguage: version: \"v0.17.0\"\nsource: kind: \"self\"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return os.DirFS(dir)
}

// manifest returns a manifest as text.
func manifest(t *testing.T, r *registrytest.Registry, repo, tag string) string {
	t.Helper()
	m, err := r.Store.GetTag(context.Background(), repo, tag)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	data := make([]byte, m.Descriptor().Size)
	if _, err := m.Read(data); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAModuleThatCannotBePushedIsRefused(t *testing.T) {
	t.Parallel()
	edit := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason, kind, version, says string
		edit                        func(*testing.T, string)
	}{
		"NoVersion":   {"latest is no version", "self", "latest", "is not the version of a module", nil},
		"NotExact":    {"the version is not exact", "self", "v0.1", "is not the version of a module", nil},
		"OtherMajor":  {"the module has another major version", "self", "v1.0.0", "whose versions are v0.N.N", nil},
		"Changed":     {"a file is changed", "git", "v0.1.0", "not everything is committed: M note/note.cue", edit("note/note.cue", "package note\n")},
		"New":         {"a file is new", "git", "v0.1.0", "not everything is committed: ?? new.cue", edit("new.cue", "package x\n")},
		"NoModule":    {"it is no module", "self", "v0.1.0", "only a module can be pushed", func(t *testing.T, dir string) { t.Helper(); _ = os.RemoveAll(filepath.Join(dir, "cue.mod")) }},
		"NoSource":    {"the declaration does not say what the source is", "self", "v0.1.0", "has no source", edit("cue.mod/module.cue", "module: \"example.com/ops@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		"OtherSource": {"a source that cue does not know", "svn", "v0.1.0", "source.kind: 2 errors in empty disjunction", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := moduleDir(t, tc.kind)
			if tc.edit != nil {
				tc.edit(t, dir)
			}
			if _, err := registry.Pack(t.Context(), dir, tc.version); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestAFailedPushSaysWhyAndNoCredentials(t *testing.T) {
	t.Parallel()
	dir := moduleDir(t, "self")
	p, err := registry.Pack(t.Context(), dir, "v0.1.2")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		env    string
		fail   http.Handler
		code   registry.Code
	}{
		"NoCredentials": {"nobody may push without", "DOCKER_CONFIG=/nowhere", nil, registry.Unauthorized},
		"Fails":         {"the registry fails", "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), registry.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registrytest.New(t, false)
			r.Fail(tc.fail)
			to, err := registry.ParseTarget(r.Host + "/example.com/ops:v0.1.2")
			if err != nil {
				t.Fatal(err)
			}
			_, err = registry.New(registry.Options{Env: append(r.Env(t), tc.env)}).Push(t.Context(), p, to)
			if got, ok := errors.AsType[*registry.Error](err); !ok || got.Code != tc.code || strings.Contains(err.Error(), registrytest.Password) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if _, err := r.Store.ResolveTag(t.Context(), "example.com/ops", "v0.1.2"); !errors.Is(err, ociregistry.ErrNameUnknown) && !errors.Is(err, ociregistry.ErrManifestUnknown) {
				t.Errorf("%s: it was pushed: %v", tc.reason, err)
			}
		})
	}
}
