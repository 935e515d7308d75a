package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"operetta.dev/test/shape"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions is how many schemas of each form are tried. Each costs one dry-run request, and no kind
// is installed.
const definitions = 150

// TestWhatVetAcceptsTheAPIServerAccepts generates schemas with defaults and rules, and compares the
// verdict of vet on their definitions with that of the API server.
func TestWhatVetAcceptsTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	random := rand.New(rand.NewPCG(7, 13))
	accepted, refused, inexpressible := 0, 0, 0
	for i := range 2 * definitions {
		data := make([]byte, 60)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		spec := shape.Defaults(data)
		if i%2 == 1 {
			spec = shape.Of(data)
		}
		source := shape.Prelude + "#Spec: " + spec + "\n"
		generated, errs, err := definitionOf(source, i)
		if err != nil {
			inexpressible++
			continue
		}
		answer := harness.Suite.Admin.Create(t.Context(), generated, client.DryRunAll)
		if (answer == nil) != (errs == nil) {
			t.Errorf("vet: %v\nthe API server: %v\n%s", errs, answer, source)
		}
		if answer == nil {
			accepted++
		} else {
			refused++
		}
	}
	t.Logf("%d definitions accepted, %d refused, %d schemas have none", accepted, refused, inexpressible)
	if accepted < definitions || refused < 5 {
		t.Error("that are too few to show anything")
	}
}

// definitionOf returns the definition of a schema, and why vet rejects it. It errors if no definition
// can be generated.
func definitionOf(source string, n int) (*unstructured.Unstructured, error, error) {
	input := cuecontext.New().CompileString(source, cue.Filename("shape.cue"))
	generated, err := crd.Generate(crd.CustomResource{
		Group: fmt.Sprintf("shape%d.example.com", n), Kind: "Shape",
		Versions: []crd.Version{{Name: "v1", Served: true, Storage: true, Spec: input.LookupPath(cue.ParsePath("#Spec"))}},
	})
	if err != nil {
		return nil, nil, err
	}
	text, err := crd.YAML(generated)
	if err != nil {
		return nil, nil, err
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &out.Object); err != nil {
		return nil, nil, err
	}
	return out, conform.Check(generated), nil
}
