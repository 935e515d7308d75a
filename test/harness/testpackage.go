package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/crd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPackageHead is the beginning of a TestPackage. NAME stands for its name, which is part of its group.
const TestPackageHead = `package NAME

import "operetta.dev/schemas/operator"

operator.#Controller

group: "NAME.example.com"
kind:  "Thing"
versions: v1: spec: #Spec
cr: spec: #Spec
`

// TestPackage is a small package of one test. Its group is unique, so that tests can run in parallel.
type TestPackage struct {
	T    *testing.T
	Name string
	Dir  string
}

// NewTestPackage writes a TestPackage of TestPackageHead and a body, in which NAME stands for its name.
func NewTestPackage(t *testing.T, name, body string) *TestPackage {
	t.Helper()
	p := &TestPackage{T: t, Name: name, Dir: WritePackage(t, name, strings.ReplaceAll(TestPackageHead+body, "NAME", name))}
	t.Cleanup(p.forget)
	return p
}

// forget takes the label of packages off the definition that a test leaves behind. Each operator that starts looks
// for resources of each definition with that label, which would be a request for each test that has ended.
func (p *TestPackage) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	definition := Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+p.Name+".example.com")
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{crd.PackageLabel: nil}}}
	err := Suite.Admin.Patch(ctx, definition, client.RawPatch(types.MergePatchType, Encode(p.T, labels)))
	if client.IgnoreNotFound(err) != nil {
		p.T.Logf("forgetting package %s: %v", p.Name, err)
	}
}

// Controller returns the name of the package's controller in the metrics.
func (p *TestPackage) Controller() string { return "thing." + p.Name + ".example.com" }

// Thing returns a resource of the package.
func (p *TestPackage) Thing(s *Env, name string, spec map[string]any) *unstructured.Unstructured {
	u := Object(p.Name+".example.com/v1", "Thing", s.Namespace, name)
	u.Object["spec"] = spec
	return u
}

// ConfigMap returns a ConfigMap in the namespace of the test.
func (s *Env) ConfigMap(name string, data map[string]any) *unstructured.Unstructured {
	u := s.Ref("ConfigMap", name)
	u.Object["data"] = data
	return u
}

// ExpectData waits until a key of a ConfigMap has a value, and returns the ConfigMap.
func (s *Env) ExpectData(name, key, want string) *unstructured.Unstructured {
	s.T.Helper()
	return s.ExpectObject(s.Ref("ConfigMap", name), fmt.Sprintf("to have %s: %s", key, want), func(u *unstructured.Unstructured) error {
		if got := Field(u, "data", key); got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// ExpectFinished waits until a deleted resource is gone, and no object of the kinds has an owner label.
func (s *Env) ExpectFinished(cr *unstructured.Unstructured, kinds ...string) {
	s.T.Helper()
	s.ExpectGone(cr)
	for _, kind := range kinds {
		Eventually(s.T, "no "+kind+" of "+cr.GetName(), func() error {
			for _, u := range s.List(APIVersions[kind], kind) {
				if u.GetLabels()["operetta.dev/owner"] != "" {
					return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
				}
			}
			return nil
		})
	}
}

// WritePackage writes a package of one file into a new folder, without a CUE module, and returns the
// folder.
func WritePackage(t *testing.T, name, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	WriteFile(t, filepath.Join(dir, name+".cue"), content)
	return dir
}
