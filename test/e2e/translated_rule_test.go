package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// translatedBody has constraints over several fields, which become rules of the definition.
const translatedBody = `
#Spec: {
	min:  int | *1
	max:  (int | *3) & >=min
	mode: *"plain" | "tls"
	cert?: string
	if mode == "tls" {
		// With mode tls, name a certificate.
		cert!: _
	}
	storage?: {kind: "disk", size: int} | {kind: "bucket", name!: string}
	source: {git?: string, oci?: string} & matchN(1, [{git!: _}, {oci!: _}])
}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: max: "\(cr.spec.max)"
}
`

// TestTheAPIServerRefusesWhatCUERefusesOfSeveralFields applies resources with kubectl, without any operator.
func TestTheAPIServerRefusesWhatCUERefusesOfSeveralFields(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "translated", translatedBody)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	git := map[string]any{"git": "a"}
	for name, tc := range map[string]struct {
		reason string
		spec   map[string]any
		says   []string
	}{
		"simplest":    {"all others have defaults", map[string]any{"source": git}, nil},
		"all":         {"nothing contradicts", map[string]any{"min": 2, "max": 2, "mode": "tls", "cert": "c", "source": map[string]any{"oci": "b"}}, nil},
		"bound":       {"max has a default, which min exceeds", map[string]any{"min": 4, "source": git}, []string{"spec.max", "max must be >= min"}},
		"certificate": {"the comment of the author is the message", map[string]any{"mode": "tls", "source": git}, []string{"spec.cert", "Required value", "With mode tls, name a certificate."}},
		"both":        {"one of two", map[string]any{"source": map[string]any{"git": "a", "oci": "b"}}, []string{"spec.source", "git, oci"}},
		"disk":        {"what the kind requires is there", map[string]any{"source": git, "storage": map[string]any{"kind": "disk", "size": 1}}, nil},
		"untold":      {"CUE fills the kind in", map[string]any{"source": git, "storage": map[string]any{"name": "b"}}, nil},
		"incomplete":  {"a bucket has a name", map[string]any{"source": git, "storage": map[string]any{"kind": "bucket"}}, []string{"spec.storage", `kind "bucket" requires name`}},
		"mixed":       {"a disk has none", map[string]any{"source": git, "storage": map[string]any{"kind": "disk", "size": 1, "name": "b"}}, []string{"spec.storage", `kind "disk" allows no name`}},
		"undecidable": {"it may be either", map[string]any{"source": git, "storage": map[string]any{}}, []string{"spec.storage", "set kind"}},
		"none":        {"one of two", map[string]any{"source": map[string]any{}}, []string{"spec.source", "git, oci"}},
	} {
		u := p.Thing(s.Env, name, tc.spec)
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := harness.Kubectl(t.Context(), "apply", "-f", file)
		switch {
		case tc.says == nil && err != nil:
			t.Errorf("%s: %s: %v %s", name, tc.reason, err, out)
		case tc.says != nil && (err == nil || !harness.ContainsAll(err.Error()+out, tc.says)):
			t.Errorf("%s: %s: got %v %s, want %s", name, tc.reason, err, out, strings.Join(tc.says, " and "))
		}
	}
}

// TestARuleThatIsAddedStrandsNoStoredResource: an API server looks at a rule again only where something changes.
func TestARuleThatIsAddedStrandsNoStoredResource(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const bare = `
#Spec: {min: int | *1, max: int | *3}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: max: "\(cr.spec.max)"
}
`
	p := newTestPackage(t, "ratcheted", bare)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	cr := s.Create(p.Thing(s.Env, "old", map[string]any{"min": int64(5), "max": int64(3)}))

	ruled := strings.Replace(bare, "max: int | *3", "max: (int | *3) & >=min", 1)
	harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+ruled, "NAME", p.Name))
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	// The rule is enforced once the new definition is served.
	machine.Eventually(t, "a new resource is refused", func() bool {
		u := p.Thing(s.Env, "new", map[string]any{"min": int64(5), "max": int64(3)})
		return apierrors.IsInvalid(harness.Suite.Admin.Create(t.Context(), u, client.DryRunAll))
	})
	patch := func(text string) error {
		return harness.Suite.Admin.Patch(t.Context(), cr.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err := patch(`{"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/held"]}}`); err != nil {
		t.Errorf("its metadata cannot be written: %v", err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Failed"}}`))
	if err := harness.Suite.Admin.Status().Patch(t.Context(), cr.DeepCopy(), status); err != nil {
		t.Errorf("its status cannot be written: %v", err)
	}
	if err := patch(`{"spec": {"min": 6}}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.max") {
		t.Errorf("another spec that breaks the rule: %v", err)
	}
	if err := patch(`{"spec": {"max": 7}}`); err != nil {
		t.Errorf("a spec that mends it: %v", err)
	}
	if err := patch(`{"metadata": {"finalizers": null}}`); err != nil {
		t.Errorf("the finalizer cannot be removed: %v", err)
	}
	s.Delete(cr)
}
