package crd_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

var update = flag.Bool("update", false, "write the results into testdata")

// TestGoldens generates the CRD of every archive in testdata. An archive holds
//
//	input.cue       the schema: #Spec, and #Status if there is one
//	crd.yaml        the result, or
//	error.txt       the faults
//	accept/x.yaml   a spec that both CUE and the API server accept, and make the same of
//	agree/x.yaml    a value that both accept, and whose defaults the API server leaves to CUE
//	refuse/x.yaml   a spec that both refuse
//	update/x.yaml   a list of two specs: the second may replace the first
//	freeze/x.yaml   a list of two specs: the second may not replace the first
func TestGoldens(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, path)
		})
	}
}

func golden(t *testing.T, path string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	input := cuecontext.New().CompileBytes(file(archive, "input.cue"), cue.Filename("input.cue"))
	definition := definitionOf(input)
	result, err := crd.Generate(definition)
	want, got := archive.Files[:0:0], map[string][]byte{}
	for _, f := range archive.Files {
		if f.Name != "crd.yaml" && f.Name != "error.txt" {
			want = append(want, f)
		}
	}
	if err != nil {
		if strings.Contains(string(txtar.Format(archive)), "\n-- a") {
			t.Errorf("there is no CRD: %v", err)
		}
		got["error.txt"] = []byte(err.Error() + "\n")
	} else {
		got["crd.yaml"] = manifest(t, result)
		agree(t, result, input, archive)
	}
	if *update {
		for name, data := range got {
			want = append(want, txtar.File{Name: name, Data: data})
		}
		archive.Files = want
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"crd.yaml", "error.txt"} {
		if diff := cmp.Diff(string(file(archive, name)), string(got[name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// definitionOf wraps the #Spec and #Status of a golden.
func definitionOf(input cue.Value) crd.CustomResource {
	return crd.CustomResource{
		Group: "example.com", Kind: "WebShop",
		Versions: []crd.Version{{
			Name: "v1", Served: true, Storage: true,
			Spec:   input.LookupPath(cue.ParsePath("#Spec")),
			Status: input.LookupPath(cue.ParsePath("#Status")),
		}},
	}
}

// manifest is the CRD without the parts that are the same in all goldens; the golden
// "whole" alone keeps them.
func manifest(t *testing.T, result *apiextensionsv1.CustomResourceDefinition) []byte {
	t.Helper()
	if err := conform.Check(result); err != nil {
		t.Errorf("the API server refuses the CRD: %v", err)
	}
	whole, err := crd.YAML(result)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(t.Name(), "/whole") {
		return whole
	}
	text, err := yaml.Marshal(result.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// agree holds CUE and the API server against each other.
func agree(t *testing.T, result *apiextensionsv1.CustomResourceDefinition, input cue.Value, archive *txtar.Archive) {
	t.Helper()
	server, err := conform.NewServer(result, "v1")
	if err != nil {
		t.Fatal(err)
	}
	schema := input.LookupPath(cue.ParsePath("#Spec"))
	for _, f := range archive.Files {
		verb, _, _ := strings.Cut(f.Name, "/")
		switch verb {
		case "accept", "agree", "refuse":
			one(t, server, schema, f)
		case "update", "freeze":
			two(t, server, f, verb == "update")
		}
	}
}

// one demands that both accept a spec or both refuse it, and that what the server fills
// in changes nothing for CUE: it is what CUE would have filled in.
func one(t *testing.T, server *conform.Server, schema cue.Value, f txtar.File) {
	t.Helper()
	accept := !strings.HasPrefix(f.Name, "refuse/")
	object := resource(t, f.Data, "spec")
	stored, serverErr := server.Admit(object, nil)
	given, cueErr := evaluate(schema, object["spec"])
	if (serverErr == nil) != accept {
		t.Errorf("%s: the API server: %v", f.Name, serverErr)
	}
	if (cueErr == nil) != accept {
		t.Errorf("%s: CUE: %v", f.Name, cueErr)
	}
	if !accept || cueErr != nil || serverErr != nil {
		return
	}
	after, err := evaluate(schema, stored["spec"])
	if err != nil {
		t.Errorf("%s: CUE refuses what the server stores: %v", f.Name, err)
		return
	}
	if diff := cmp.Diff(normal(t, given), normal(t, after)); diff != "" {
		t.Errorf("%s: CUE of what the user wrote and of what the server stored (-user +server):\n%s", f.Name, diff)
	}
	if strings.HasPrefix(f.Name, "agree/") {
		return
	}
	if diff := cmp.Diff(normal(t, given), normal(t, marshal(t, stored["spec"])), ignoreNull); diff != "" {
		t.Errorf("%s: defaults (-CUE +server):\n%s", f.Name, diff)
	}
}

func evaluate(schema cue.Value, spec any) ([]byte, error) {
	if spec != nil {
		schema = schema.Unify(cuecontext.New().Encode(spec))
	}
	if err := schema.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, err
	}
	return schema.MarshalJSON()
}

func two(t *testing.T, server *conform.Server, f txtar.File, accept bool) {
	t.Helper()
	var specs []json.RawMessage
	if err := yaml.Unmarshal(f.Data, &specs); err != nil || len(specs) != 2 {
		t.Fatalf("%s: two specs: %v", f.Name, err)
	}
	old, err := server.Admit(resource(t, specs[0], "spec"), nil)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	if _, err := server.Admit(resource(t, specs[1], "spec"), old); (err == nil) != accept {
		t.Errorf("%s: %v", f.Name, err)
	}
}

// ignoreNull treats a field that is null like a missing one: the API server
// has no default null.
var ignoreNull = cmpopts.IgnoreMapEntries(func(_ string, v any) bool { return v == nil })

// resource is a custom resource with the spec in text, or without any if that is empty.
func resource(t *testing.T, text []byte, field string) map[string]any {
	t.Helper()
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "WebShop", "metadata": map[string]any{"name": "web"}}
	if strings.TrimSpace(string(text)) == "" {
		return object
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	object[field] = normal(t, data)
	return object
}

// normal decodes JSON as the API server does: integers are int64.
func normal(t *testing.T, data []byte) any {
	t.Helper()
	var wrapped struct{ Value any }
	if err := decode([]byte(`{"Value":`+string(data)+`}`), &wrapped); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return wrapped.Value
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func file(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}
