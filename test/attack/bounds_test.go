package attack

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// manyNames returns a map of n names.
func manyNames(n int) map[string]any {
	out := make(map[string]any, n)
	for i := range n {
		out[fmt.Sprintf("N%05d", i)] = "v"
	}
	return out
}

// TestAttackMoreNamesThanAnybodyWritesAreRefused: the API server took 60,000 environment
// variables for the reference package, which cost 40 s and half a gigabyte to evaluate.
func TestAttackMoreNamesThanAnybodyWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	if err := harness.InstallCRDs(t.Context(), harness.PackageDir("webapp")); err != nil {
		t.Fatal(err)
	}
	alice := s.Tenant("alice", s.Namespace, harness.Rule("example.com", harness.AllVerbs, "webapps"))
	alice.Create(s.Webapp("honest", map[string]any{"image": "nginx:1.25", "env": manyNames(128)}))
	for _, field := range []string{"env", "files", "secrets"} {
		err := alice.Client.Create(t.Context(), s.Webapp("many-"+field, map[string]any{"image": "nginx:1.25", field: manyNames(60_000)}))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec."+field+": Too many: 60000: must have at most ") {
			t.Errorf("60,000 names in %s: %.300v", field, err)
		}
	}
}

// fanoutPackage has as many numbers as a user says, and nothing about how many that may be.
const fanoutPackage = `package fanout

import (
	"list"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "fanout.example.com"
kind:  "Thing"
versions: v1: spec: #Spec
cr: spec: #Spec

#Spec: many: NUMBER
_numbers: list.Range(0, cr.spec.many, 1)

components: many: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {for i in _numbers {"n\(i)": ""}}
}
`

// TestAttackANumberThatDrivesAListIsWarnedOf: {many: 1000000000} ended the operator for all
// kinds, and vet had nothing to say of the package.
func TestAttackANumberThatDrivesAListIsWarnedOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		number, want string
		code         int
	}{
		"unlimited": {"int & >=0", "fanout.cue:17: warning: cr.spec.many: list.Range(0, cr.spec.many, 1) grows with it, and it has no limit (", 1},
		"huge":      {"int & >=0 & <=1000000000", "fanout.cue:17: warning: cr.spec.many: list.Range(0, cr.spec.many, 1) grows with it, up to 1000000000 steps (", 1},
		"limited":   {"int & >=0 & <=100", "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := harness.WritePackage(t, "fanout", strings.ReplaceAll(fanoutPackage, "NUMBER", c.number))
			code, out := vet(t, dir)
			if code != 0 || !strings.Contains(out, c.want) {
				t.Errorf("vet ended with %d and said %q, wanted %q", code, out, c.want)
			}
			if code, out := vet(t, "--strict", dir); code != c.code {
				t.Errorf("vet --strict ended with %d: %s", code, out)
			}
		})
	}
}

// vet runs the command and returns how it ended and what it said of the packages.
func vet(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Suite.Operetta, append([]string{"vet"}, args...)...)
	var text strings.Builder
	cmd.Stderr = &text
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), text.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, text.String()
}

// settings is a package with a map that is limited by the author, or not.
func settings(name, env string) string {
	return strings.NewReplacer("NAME", name, "ENV", env).Replace(`package NAME

import (
	"struct"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "NAME.example.com"
kind:  "Thing"
versions: v1: spec: #Spec
cr: spec: #Spec

#Spec: {
	text: string | *"hello"
	env?: ENV
	few?: {[string]: string} & struct.MaxFields(3)
}

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: text: cr.spec.text
}
`)
}

// TestAResourceFromBeforeALimitStays has more names than the new definition allows. The
// API server lets pass what an update does not change.
func TestAResourceFromBeforeALimitStays(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	const name = "beforelimits"
	p := &harness.TestPackage{T: t, Name: name, Dir: harness.WritePackage(t, name, settings(name, "{[string]: string} & struct.MaxFields(1000)"))}
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))
	cr := alice.Create(p.Thing(s, "shop", map[string]any{"env": manyNames(300)}))
	s.ExpectResourceReady(cr)

	harness.WriteFile(t, filepath.Join(p.Dir, name+".cue"), settings(name, "[string]: string"))
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+p.Name+".example.com")
	s.ExpectObject(definition, "to have a limit", func(u *unstructured.Unstructured) error {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		if text := fmt.Sprint(versions); !strings.Contains(text, "maxProperties:256") {
			return fmt.Errorf("it has none: %.300s", text)
		}
		return nil
	})
	if err := alice.Patch(cr, harness.Spec(map[string]any{"text": "bye"})); err != nil {
		t.Fatalf("another field can be changed: %v", err)
	}
	s.ExpectData("shop", "text", "bye")
	s.ExpectResourceReady(cr) // so the status is written as well
	err := alice.Patch(cr, harness.Spec(map[string]any{"env": map[string]any{"ONE_MORE": "v"}}))
	if !apierrors.IsInvalid(err) {
		t.Errorf("the map itself stays beyond the limit: %v", err)
	}
	if err := alice.Patch(cr, map[string]any{"spec": map[string]any{"env": nil}}); err != nil {
		t.Errorf("it can be brought within it: %v", err)
	}
}
