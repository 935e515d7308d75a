package schemas_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/schemas"
	"operetta.dev/test/machine"
)

// groups are the API groups that an author can count on, with an object of each.
var groups = map[string]string{
	"core/v1":        "Service",
	"apps/v1":        "Deployment",
	"batch/v1":       "CronJob",
	"networking/v1":  "Ingress",
	"policy/v1":      "PodDisruptionBudget",
	"autoscaling/v2": "HorizontalPodAutoscaler",
	"rbac/v1":        "RoleBinding",
	"storage/v1":     "StorageClass",
}

// apiVersions are those whose API group is not the name of the folder.
var apiVersions = map[string]string{
	"core/v1":       "v1",
	"networking/v1": "networking.k8s.io/v1",
	"rbac/v1":       "rbac.authorization.k8s.io/v1",
	"storage/v1":    "storage.k8s.io/v1",
}

// forms are the two trees.
var forms = map[string]func() fs.FS{"full": schemas.Full, "light": schemas.Light}

func TestObjectsKnowTheirKind(t *testing.T) {
	for name, form := range forms {
		tree := overlay(t, form())
		for group, object := range groups {
			want := apiVersions[group]
			if want == "" {
				want = group
			}
			kinds := objects(t, loadPackage(t, tree, "./schemas/k8s/"+group))
			for _, kind := range []string{object, object + "List"} {
				if got := kinds[kind]; got != want {
					t.Errorf("%s %s: #%s has apiVersion %q, want %q", name, group, kind, got, want)
				}
			}
		}
	}
}

// objects returns the apiVersion of each object definition, and checks that the kind is its name.
func objects(t *testing.T, pkg cue.Value) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, def := range definitions(t, pkg) {
		if def.IncompleteKind() != cue.StructKind || !def.LookupPath(cue.ParsePath("apiVersion")).Exists() {
			continue
		}
		kind, err := def.LookupPath(cue.ParsePath("kind")).String()
		if err != nil || kind != strings.TrimPrefix(name, "#") {
			t.Errorf("%s has kind %q: %v", name, kind, err)
		}
		found[kind], _ = def.LookupPath(cue.ParsePath("apiVersion")).String()
	}
	return found
}

// definitions returns those of a package by name.
func definitions(t *testing.T, pkg cue.Value) map[string]cue.Value {
	t.Helper()
	defs := map[string]cue.Value{}
	fields, err := pkg.Fields(cue.Definitions(true))
	if err != nil {
		t.Fatal(err)
	}
	for fields.Next() {
		defs[fields.Selector().String()] = fields.Value()
	}
	return defs
}

func TestLightDefinesWhatFullDefines(t *testing.T) {
	machine.Serial(t)
	full, light := overlay(t, schemas.Full()), overlay(t, schemas.Light())
	if diff := cmp.Diff(names(full), names(light)); diff != "" {
		t.Fatalf("the files differ (-full +light):\n%s", diff)
	}
	for _, name := range names(full) {
		dir := "./" + path.Dir(name)
		fullDefs := definitions(t, loadPackage(t, full, dir))
		lightDefs := definitions(t, loadPackage(t, light, dir))
		if diff := cmp.Diff(scalars(fullDefs), scalars(lightDefs)); diff != "" {
			t.Errorf("%s: the definitions differ (-full +light):\n%s", dir, diff)
		}
	}
}

// names returns the CUE files of a tree.
func names(tree fs.FS) []string {
	found, _ := fs.Glob(tree, "schemas/k8s/*/*/*.cue")
	more, _ := fs.Glob(tree, "schemas/*/*.cue")
	return slices.Concat(found, more)
}

// scalars returns the value of each definition that has one, and of the others what kind they are of.
func scalars(defs map[string]cue.Value) map[string]string {
	values := map[string]string{}
	for name, def := range defs {
		values[name] = def.IncompleteKind().String()
		if data, err := def.MarshalJSON(); err == nil && def.IncompleteKind() != cue.StructKind {
			values[name] = string(data)
		}
	}
	return values
}

func TestManifestsRenderTheSame(t *testing.T) {
	full, light := manifests(t, schemas.Full()), manifests(t, schemas.Light())
	if len(full) < 20 {
		t.Fatalf("%d manifests", len(full))
	}
	if diff := cmp.Diff(full, light); diff != "" {
		t.Errorf("the JSON differs (-full +light):\n%s", diff)
	}
}

// manifests renders those of k8s/test with one form of the types.
func manifests(t *testing.T, form fs.FS) map[string]string {
	t.Helper()
	rendered := map[string]string{}
	fields, err := loadPackage(t, corpus(t, form), "./schemas/k8s/test").LookupPath(cue.ParsePath("manifests")).Fields()
	if err != nil {
		t.Fatal(err)
	}
	for fields.Next() {
		if err := fields.Value().Validate(cue.Concrete(true)); err != nil {
			t.Errorf("%s: %v", fields.Selector(), err)
			continue
		}
		rendered[fields.Selector().String()] = canonical(t, fields.Value())
	}
	return rendered
}

// canonical is the JSON of an object with its fields by name: their order is the author's with the light
// types and Kubernetes' own with the full ones.
func canonical(t *testing.T, v cue.Value) string {
	t.Helper()
	data, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	data, err = json.MarshalIndent(decoded, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// corpus is a tree with the manifests in it.
func corpus(t testing.TB, form fs.FS) fs.FS {
	t.Helper()
	tree := overlay(t, form)
	for _, name := range []string{"test.cue", "workloads.cue", "others.cue"} {
		data, err := os.ReadFile("k8s/test/" + name)
		if err != nil {
			t.Fatal(err)
		}
		add(tree, "schemas/k8s/test/"+name, data)
	}
	return tree
}
