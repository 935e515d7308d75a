package registry_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
	"operetta.dev/test/registrytest"
)

const lib = `
-- cue.mod/module.cue --
module: "example.com/lib@v0"
language: version: "v0.16.0"
-- names/names.cue --
package names

import "example.com/base/parts"

#Prefix: parts.#Dash
-- unused/unused.cue --
package unused
-- cue.mod/usr/operetta.dev/schemas/operator/mine.cue --
package operator

#Controller: kind: "Stolen"
`

const base = `
-- cue.mod/module.cue --
module: "example.com/base@v1"
language: version: "v0.17.0"
-- parts/parts.cue --
package parts

#Dash: "-"
`

// dependent is a package that depends on both.
func dependent(deps string) fs.FS {
	return fstest.MapFS{
		"cue.mod/module.cue": {Data: []byte("module: \"example.com/ops@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: {\n" + deps + "}\n")},
		"main.cue": {Data: []byte(`package main

import (
	"operetta.dev/schemas/operator"
	"example.com/lib/names"
)

operator.#Controller
group: "example.com"
kind:  "Note"
versions: v1: spec: #Spec
#Spec: {}
cr: spec: #Spec
components: note: objects: note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name + names.#Prefix}
`)},
	}
}

const bothDeps = "\t\"example.com/lib@v0\": v: \"v0.1.2\"\n\t\"example.com/base@v1\": v: \"v1.0.0\"\n"

func published(t *testing.T) *registrytest.Registry {
	t.Helper()
	r := registrytest.New(t, false)
	r.Publish(t, "example.com/lib@v0.1.2", lib)
	r.Publish(t, "example.com/base@v1.0.0", base)
	return r
}

func load(modules source.Modules, fsys fs.FS) (*source.Snapshot, error) {
	return source.Loader{Modules: modules}.Module("ops", "", ".", fsys)
}

func TestDependenciesBelongToTheSnapshotAndNeedNoRegistryAfterwards(t *testing.T) {
	t.Parallel()
	r := published(t)
	s, err := load(registry.New(registry.Options{Env: r.Env(t)}), dependent(bothDeps))
	if err != nil {
		t.Fatal(err)
	}
	r.Stop()
	r.Requests()
	want := []string{
		"cue.mod/module.cue", "cue.mod/pkg/example.com/base/cue.mod/module.cue", "cue.mod/pkg/example.com/base/parts/parts.cue",
		"cue.mod/pkg/example.com/lib/cue.mod/module.cue", "cue.mod/pkg/example.com/lib/names/names.cue", "main.cue",
	}
	set := cmp.Transformer("set", func(names []string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			out[name] = true
		}
		return out
	})
	var got []string
	for name := range s.Texts() {
		got = append(got, name)
	}
	if diff := cmp.Diff(want, got, set); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Meta().Kind != "Note" {
		t.Errorf("the kind is %s: a module has replaced the contract", p.Meta().Kind)
	}
	if s.LanguageOf("cue.mod/pkg/example.com/lib/names/names.cue") != "v0.16.0" || s.LanguageOf("main.cue") != "v0.17.0" {
		t.Error("a file is not read in the language of its module")
	}
	again, err := source.Loader{}.Files("ops", "", ".", s.Texts()) // as a PackageRevision has them
	if err != nil || again.Digest() != s.Digest() {
		t.Errorf("kept: %v, digest %s, want %s", err, again.Digest(), s.Digest())
	}
	if len(r.Requests()) > 0 {
		t.Error("the registry was asked after the package was read")
	}
}

func TestTheDigestOfAPackageFollowsItsDependencies(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Publish(t, "example.com/lib@v0.1.3", strings.Replace(lib, `parts.#Dash`, `parts.#Dash + "x"`, 1))
	modules := registry.New(registry.Options{Env: r.Env(t)})
	one, err := load(modules, dependent(bothDeps))
	if err != nil {
		t.Fatal(err)
	}
	other, err := load(modules, dependent(strings.Replace(bothDeps, "v0.1.2", "v0.1.3", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() == other.Digest() {
		t.Error("two versions of a dependency give the same digest")
	}
}

func TestTheCacheOutlivesTheRegistry(t *testing.T) {
	t.Parallel()
	r := published(t)
	env := r.Env(t)
	if _, err := load(registry.New(registry.Options{Env: env}), dependent(bothDeps)); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if _, err := load(registry.New(registry.Options{Env: env}), dependent(bothDeps)); err != nil {
		t.Errorf("without the registry: %v", err)
	}
}

func TestModulesAreFetchedWhereThereIsNoFolderForTheCache(t *testing.T) {
	t.Parallel()
	r := published(t)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	modules := registry.New(registry.Options{Env: append(r.Env(t), "CUE_CACHE_DIR="+file+"/none")})
	if _, err := load(modules, dependent(bothDeps)); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if _, err := load(modules, dependent(bothDeps)); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestADependencyThatCannotBeUsedIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Publish(t, "example.com/lib@v0.2.0", strings.Replace(lib, "v0.16.0\"\n", "v0.16.0\"\ndeps: \"example.com/base@v1\": v: \"v1.1.0\"\n", 1))
	r.Publish(t, "example.com/lib/names@v0.1.0", "\n-- cue.mod/module.cue --\nmodule: \"example.com/lib/names@v0\"\nlanguage: version: \"v0.17.0\"\n-- names.cue --\npackage names\n")
	env := r.Env(t)
	cases := map[string]struct {
		reason string
		deps   string
		env    []string
		fail   http.Handler
		want   string
		code   registry.Code
	}{
		"Missing": {
			reason: "the registry does not have the version",
			deps:   "\n\t\"example.com/lib@v0\": v: \"v0.9.9\"\n", code: registry.NotFound,
			want: "cue.mod/module.cue:5: module example.com/lib@v0.9.9: registry HOST: it has no such module, or does not show it",
		},
		"Unauthorized": {
			reason: "credentials are those of the cue command, and there are none",
			deps:   bothDeps, env: []string{"DOCKER_CONFIG=" + t.TempDir()}, code: registry.Unauthorized,
			want: "cue.mod/module.cue:4: module example.com/lib@v0.1.2: registry HOST: it refuses the credentials, or wants some (HTTP 401)",
		},
		"Unreachable": {
			reason: "nobody listens",
			deps:   bothDeps, env: []string{"CUE_REGISTRY=127.0.0.1:1"}, code: registry.Unreachable,
			want: "cue.mod/module.cue:4: module example.com/lib@v0.1.2: registry 127.0.0.1:1: connection refused",
		},
		"None": {
			reason: "the registry is switched off, as the cue command has it",
			deps:   bothDeps, env: []string{"CUE_REGISTRY=none"}, code: registry.NotFound,
			want: "cue.mod/module.cue:4: module example.com/lib@v0.1.2: it has no such module, or does not show it",
		},
		"NotSelected": {
			reason: "the version of another dependency is lower than what this one needs",
			deps:   "\t\"example.com/lib@v0\": v: \"v0.2.0\"\n\t\"example.com/base@v1\": v: \"v1.0.0\"\n", code: -1,
			want: "cue.mod/module.cue:5: module example.com/base@v1.0.0: module example.com/lib@v0.2.0 needs at least v1.1.0; cue mod tidy writes that",
		},
		"Ambiguous": {
			reason: "two modules have the package",
			deps:   bothDeps + "\t\"example.com/lib/names@v0\": v: \"v0.1.0\"\n", code: -1,
			want: "cue.mod/module.cue:4: module example.com/lib@v0.1.2: it has the package example.com/lib/names, and so has module example.com/lib/names@v0.1.0",
		},
		"Replaced": {
			reason: "a folder of the machine is no module of a registry",
			deps:   "\t\"example.com/lib@v0\": {v: \"v0.1.2\", replaceWith: \"../lib\"}\n", code: -1,
			want: "cue.mod/module.cue:4: module example.com/lib@v0.1.2: it is replaced with ../lib, and operetta uses only modules of registries; vendor it in cue.mod/pkg",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := append(append([]string{}, env...), "CUE_CACHE_DIR="+t.TempDir())
			_, err := load(registry.New(registry.Options{Env: append(fresh, tc.env...)}), dependent(tc.deps))
			wrong, ok := errors.AsType[*source.DependencyError](err)
			if !ok {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := fmt.Sprintf("%s:%d: %v", wrong.File, wrong.Line, wrong)
			if diff := cmp.Diff(strings.ReplaceAll(tc.want, "HOST", r.Host), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			code := registry.Code(-1)
			if of, ok := errors.AsType[*registry.Error](err); ok {
				code = of.Code
			}
			if code != tc.code {
				t.Errorf("%s: code %d, want %d", tc.reason, code, tc.code)
			}
			if strings.Contains(got, registrytest.Password) {
				t.Errorf("the error has the password: %s", got)
			}
		})
	}
}

func TestAModuleThatCannotBeFetchedIsNotAskedForAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Fail(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	now := time.Unix(1_800_000_000, 0)
	modules := registry.New(registry.Options{Env: r.Env(t), Now: func() time.Time { return now }})
	var first error
	for range 50 {
		if _, err := load(modules, dependent(bothDeps)); err == nil || first != nil && err.Error() != first.Error() {
			t.Fatalf("%v, and before %v", err, first)
		} else {
			first = err
		}
	}
	asked := len(r.Requests())
	if asked == 0 || asked > 2 {
		t.Errorf("%d requests", asked)
	}
	r.Fail(nil)
	now = now.Add(time.Minute)
	if _, err := load(modules, dependent(bothDeps)); err != nil {
		t.Errorf("after a while: %v", err)
	}
}

func TestARegistryCannotReplaceTheContract(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Publish(t, "operetta.dev@v0.9.0", "\n-- cue.mod/module.cue --\nmodule: \"operetta.dev@v0\"\nlanguage: version: \"v0.17.0\"\n-- schemas/operator/operator.cue --\npackage operator\n\n#Controller: kind: \"Stolen\"\n")
	r.Publish(t, "operetta.dev/schemas@v0.9.0", "\n-- cue.mod/module.cue --\nmodule: \"operetta.dev/schemas@v0\"\nlanguage: version: \"v0.17.0\"\n-- operator/operator.cue --\npackage operator\n\n#Controller: kind: \"Stolen\"\n")
	deps := bothDeps + "\t\"operetta.dev@v0\": v: \"v0.9.0\"\n\t\"operetta.dev/schemas@v0\": v: \"v0.9.0\"\n"
	s, err := load(registry.New(registry.Options{Env: r.Env(t)}), dependent(deps))
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Meta().Kind != "Note" {
		t.Errorf("the kind is %s", p.Meta().Kind)
	}
	for _, req := range r.Requests() {
		if strings.Contains(req.URL.Path, "operetta.dev") {
			t.Errorf("asked for %s", req.URL.Path)
		}
	}
}

func TestTheFilesOfDependenciesCountForTheLimits(t *testing.T) {
	t.Parallel()
	r := published(t)
	many := lib
	for i := range 10 {
		many += fmt.Sprintf("-- names/n%d.cue --\npackage names\n\n// %s\n", i, strings.Repeat("x", 1<<20-100))
	}
	r.Publish(t, "example.com/lib@v0.3.0", many)
	_, err := load(registry.New(registry.Options{Env: r.Env(t)}), dependent(strings.Replace(bothDeps, "v0.1.2", "v0.3.0", 1)))
	if limit, ok := errors.AsType[*source.LimitError](err); !ok || !strings.HasPrefix(limit.Name, "cue.mod/pkg/example.com/lib/names/n") {
		t.Errorf("%v", err)
	}
}

// archive returns the files of a txtar archive.
func archive(t *testing.T, text string) fs.FS {
	t.Helper()
	out, err := txtar.FS(txtar.Parse([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
