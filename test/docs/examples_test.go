package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/markdown"
	"operetta.dev/test/internal/testcache"
)

// built builds the binary, once for all tests, and returns its path.
var built = binary.Once(root, &scratch)

// scratch is a folder that is removed after the tests.
var scratch string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	repository, err := testcache.Look(root)
	if err != nil {
		return 0, err
	}
	if scratch, err = os.MkdirTemp("", "operetta-docs-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	return repository.Run(m)
}

// writeFiles writes the CUE and YAML files of a page into a folder.
func writeFiles(t *testing.T, dir, page string) {
	t.Helper()
	files, err := read(t, page).Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// rendered returns the objects that the package of a page renders for a resource.
func rendered(t *testing.T, dir string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"render"}, args...)...)
	var complaint bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("operetta render %s: %v\n%s", strings.Join(args, " "), err, &complaint)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(u); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
}

// find returns the object of a kind and name, and fails the test if it is not rendered.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name, why string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		t.Fatalf("%s: no %s %q is rendered", why, kind, name)
	}
	return objects[i]
}

// text returns the string at a path, where a number stands for an item of a list.
func text(t *testing.T, value any, path ...any) string {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[key]
		case int:
			list, _ := value.([]any)
			if key >= len(list) {
				t.Fatalf("%v: the list is too short", path)
			}
			value = list[key]
		}
	}
	s, ok := value.(string)
	if !ok {
		t.Fatalf("%v is %v, not a string", path, value)
	}
	return s
}

// The README says that the greeting is the text of the page, so nginx has to serve it.
func TestTheServersOfTheReadmeServeItsPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, "README.md")
	objects := rendered(t, dir, "./hello", "-f", "hello/world.yaml")
	pod := find(t, objects, "Deployment", "world", "the servers").Object["spec"].(map[string]any)["template"]
	volume := text(t, pod, "spec", "volumes", 0, "configMap", "name")
	page := find(t, objects, "ConfigMap", volume, "the volume")
	if got := text(t, page.Object, "data", "index.html"); got != "Hello, world" {
		t.Errorf("the page is %q", got)
	}
	mount := []any{"spec", "containers", 0, "volumeMounts", 0}
	if got, want := text(t, pod, append(mount, "name")...), text(t, pod, "spec", "volumes", 0, "name"); got != want {
		t.Errorf("the container mounts the volume %q, and the page is in %q", got, want)
	}
	if got := text(t, pod, append(mount, "mountPath")...); got != "/usr/share/nginx/html" {
		t.Errorf("the page is mounted at %s, where nginx does not look", got)
	}
}

// Every Ingress of the tutorial has to lead to a Service that exists, and every Service to
// the pods of a Deployment.
func TestTheIngressOfTheTutorialLeadsToPods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, "docs/tutorial.md")
	resource := "apiVersion: example.com/v1\nkind: Board\nmetadata: {name: main}\nspec: {host: board.example.com}\n"
	if err := os.WriteFile(filepath.Join(dir, "hosted.yaml"), []byte(resource), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := rendered(t, dir, "./board", "-f", "hosted.yaml", "--live", "board/live.yaml")
	ingress := find(t, objects, "Ingress", "main-page", "the entrance")
	backend := text(t, ingress.Object, "spec", "rules", 0, "http", "paths", 0, "backend", "service", "name")
	find(t, objects, "Service", backend, "the backend of the Ingress")
	services := 0
	for _, s := range objects {
		if s.GetKind() != "Service" {
			continue
		}
		services++
		selector, _, _ := unstructured.NestedStringMap(s.Object, "spec", "selector")
		if !slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return runsPods(u, selector) }) {
			t.Errorf("the Service %s selects no pods that are rendered", s.GetName())
		}
	}
	if services != 2 {
		t.Errorf("there are %d Services, want one of the page and one of the store", services)
	}
}

// runsPods reports whether an object has a pod template with the labels of a selector.
func runsPods(u *unstructured.Unstructured, selector map[string]string) bool {
	pod, found, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	return found && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pod))
}

// trap is a row of the table of traps: its name, and what to write instead.
var trap = regexp.MustCompile("(?m)^\\| `(\\w+)`: .* \\| `(.*)` \\|$")

// Each row of the table of traps names a predicate, and what to write instead. Both packages
// have that predicate, and the second one has it as the table says.
func TestTheTableOfTrapsIsItsSolution(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/tutorial.md")
	var packages []markdown.Block
	blocks, err := page.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Language == "cue" && strings.Contains(b.Before, "`traps/traps.cue`") {
			packages = append(packages, b)
		}
	}
	if len(packages) != 2 {
		t.Fatalf("there are %d versions of traps/traps.cue, want the traps and the solution", len(packages))
	}
	names := 0
	for _, row := range trap.FindAllStringSubmatch(section(t, page, "The traps").Text, -1) {
		name, solution := row[1], strings.ReplaceAll(row[2], `\|`, "|")
		if !strings.Contains(packages[0].Text, name+":") {
			t.Errorf("no predicate of the first package is called %s", name)
		}
		if !strings.Contains(strings.Join(strings.Fields(packages[1].Text), " "), name+": "+solution) {
			t.Errorf("the solution of %s is not %s in the second package", name, solution)
		}
		names++
	}
	if names != 6 {
		t.Errorf("%d rows were found, want 6", names)
	}
}
