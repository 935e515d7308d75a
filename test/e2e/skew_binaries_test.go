package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/packages"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The place of the field that only the newer engine knows, and of the number of the definition.
const (
	futureField  = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fromTheFuture"
	futureNumber = "/metadata/annotations/operetta.dev~1definitions"
)

// changePackageDefinition changes the definition of Package.
func changePackageDefinition(t *testing.T, operations ...map[string]any) {
	t.Helper()
	patch := client.RawPatch(types.JSONPatchType, harness.Encode(t, operations))
	if err := harness.Suite.Admin.Patch(context.WithoutCancel(t.Context()), harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "packages.operetta.dev"), patch); err != nil {
		t.Fatal(err)
	}
}

// newerEngine builds an engine of the next version from the same tree: it knows a later version of the contract, and its Packages have
// one more field. The go command takes the files that differ from elsewhere, so nothing in the tree changes.
func newerEngine(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]string{}
	replace := func(file, old, next string) {
		t.Helper()
		path := filepath.Join(harness.Suite.Root, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), old) != 1 {
			t.Fatalf("%s does not have %q once", file, old)
		}
		overlay[path] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		harness.WriteFile(t, overlay[path], strings.Replace(string(text), old, next, 1))
	}
	replace("engine/packages/packages.operetta.dev.yaml", fmt.Sprintf("operetta.dev/definitions: %q", definitionsNumber()), `operetta.dev/definitions: "99"`)
	text, err := os.ReadFile(overlay[filepath.Join(harness.Suite.Root, "engine/packages/packages.operetta.dev.yaml")])
	if err != nil {
		t.Fatal(err)
	}
	const paused = "              paused:\n"
	if strings.Count(string(text), paused) != 1 {
		t.Fatal("the definition has no field paused")
	}
	harness.WriteFile(t, overlay[filepath.Join(harness.Suite.Root, "engine/packages/packages.operetta.dev.yaml")], strings.Replace(string(text), paused, "              fromTheFuture:\n                type: integer\n"+paused, 1))
	replace("engine/packages/package.go", "	Paused               bool           `json:\"paused,omitempty\"`\n", "	Paused               bool           `json:\"paused,omitempty\"`\n	FromTheFuture        int64          `json:\"fromTheFuture,omitempty\"`\n")
	replace("engine/program/contract_version.go", "const contractVersion = 1", "const contractVersion = 2")
	file := filepath.Join(dir, "overlay.json")
	encoded, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, file, string(encoded))
	out := filepath.Join(dir, "operetta")
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build"}, binary.Flags, []string{"-overlay", file, "-o", out, "./cmd/operetta"})...)
	cmd.Dir, cmd.Env = harness.Suite.Root, append(os.Environ(), binary.Environment...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the newer engine: %v\n%s", err, said)
	}
	return out
}

// definitionsNumber is that of the definitions of the engine under test.
func definitionsNumber() string { return packages.CRDs()[0].Annotations[crd.DefinitionsAnnotation] }

// Two engines, the one under test and the next, run one after the other, in both orders. Nothing is deleted or made anew, and what the
// older one cannot read it leaves alone and says so.
func TestI6AnUpgradeOfTheEngineAndItsRollbackMakeNothingAnew(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	newer := newerEngine(t)
	harness.EngineDefinitions.Lock()
	t.Cleanup(harness.EngineDefinitions.Unlock) // after the cleanup below
	s := newEnv(t)
	plain, later := s.NewPackageObject("skewplain"), s.NewPackageObject("skewlater")
	run := func(binary string) *harness.Operator {
		t.Helper()
		s.Binary = binary
		return s.StartPackageOperator()
	}
	present := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, name := range names {
			u := s.Get("ConfigMap", "note-"+name)
			out[name] = string(u.GetUID()) + " " + u.GetResourceVersion()
		}
		return out
	}
	unchanged := func(when string, before map[string]string) {
		t.Helper()
		for name, was := range before {
			if is := present(name)[name]; is != was {
				t.Errorf("%s, the object of %s is %s, and was %s", when, name, is, was)
			}
		}
	}

	o := run("")
	plain.Apply(plain.InlineBody(note("a")))
	plain.Expect("Ready", "True", "Served")
	first := s.Create(plain.Thing(s.Env, "first", map[string]any{"text": "x"}))
	s.ExpectResourceReady(first)
	o.Stop()
	before := present("first")

	// The upgrade: the definition of Package gains a field, and its Packages and resources go on.
	o = run(newer)
	t.Cleanup(func() {
		changePackageDefinition(t, map[string]any{"op": "replace", "path": futureNumber, "value": definitionsNumber()}, map[string]any{"op": "remove", "path": futureField})
	})
	from := harness.MarkAudit(t)
	s.Patch(first, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": "yes"}}})
	later.Text(note("a")) // this engine has no roles for a contract that it does not know
	u := later.InlineBody("contract: 2\n" + note("a"))
	if err := unstructured.SetNestedField(u.Object, int64(3), "spec", "fromTheFuture"); err != nil {
		t.Fatal(err)
	}
	later.Apply(u)
	later.Expect("Ready", "True", "Served")
	second := s.Create(later.Thing(s.Env, "second", map[string]any{"text": "y"}))
	s.ExpectResourceReady(second)
	unchanged("after the upgrade", before)
	o.Stop()
	before = present("first", "second")

	// The rollback: the older engine serves what it can read, and leaves alone what it cannot.
	o = run("")
	o.ExpectLog("the definition is that of a newer engine, and stays", "definition=packages.operetta.dev")
	later.Expect("Ready", "False", "InvalidSpec", "fromTheFuture", "nothing is served")
	later.Expect("Loaded", "False", "InvalidSpec", "contract")
	s.Patch(first, harness.Spec(map[string]any{"text": "z"}))
	s.ExpectData("note-first", "text", "z")
	unchanged("after the rollback", map[string]string{"second": before["second"]})
	if got := harness.Field(s.Get("ConfigMap", "note-second"), "data", "text"); got != "y" {
		t.Errorf("what the older engine cannot read is %v", got)
	}
	// A folder that is written for a later contract is refused, with its line.
	folder := newTestPackage(t, "skewfolder", "contract: 2\n"+note("a"))
	refused := s.StartOperator(folder.Dir)
	refused.ExpectLog("contract", "skewfolder.cue:")
	refused.Stop()
	o.Stop()

	// And the upgrade again.
	o = run(newer)
	later.Expect("Ready", "True", "Served")
	unchanged("after the second upgrade", map[string]string{"second": before["second"]})
	uid, _, _ := strings.Cut(before["first"], " ")
	if got := string(s.Get("ConfigMap", "note-first").GetUID()); got != uid {
		t.Errorf("after the rollback the object of first is %s, and was %s", got, uid)
	}
	made := 0
	for _, e := range s.RequestsOf(from, s.User).OfResource("configmaps").Filter(deletesOrCreates) {
		if made++; e.Name != "note-second" || e.Code != http.StatusCreated {
			t.Errorf("%d %s %s", e.Code, e.Verb, e.RequestURI)
		}
	}
	if made != 1 {
		t.Errorf("%d objects were deleted or created, and only that of second is new", made)
	}
	s.Delete(second)
	s.ExpectGone(second)
	o.Stop()
}
