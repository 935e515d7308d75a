package eval

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/program"
)

const (
	// variants is how often the spec of each resource is edited once the resource is at rest. Each edit costs about as
	// much as the resource itself.
	variants = 2
	// maxSteps bounds how many states of one rollout are compared.
	maxSteps = 6
)

// A state is the objects of a cluster at a time.
type state []*unstructured.Unstructured

// A named state says how the cluster has come to it.
type namedState struct {
	name string
	state
}

// statesOf rolls a resource out, edits its spec a few times, and returns the states that the cluster comes to. It also
// returns which object the resource is.
func statesOf(t *testing.T, random *rand.Rand, seen coverage, p *program.Program, cr map[string]any) (cluster.Ref, []namedState) {
	t.Helper()
	w := dryrun.New(configMap, p)
	resource := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(cr)}
	if p.Meta().ClusterScoped {
		resource.SetNamespace("")
	}
	resource.SetUID("")
	put, err := w.Put(resource)
	if err != nil {
		t.Fatal(err)
	}
	ref := cluster.RefOf(put)
	out := rollOut(t, "as it is made up", w)
	for range variants {
		edited := w.Get(ref)
		spec, ok := edited.Object["spec"].(map[string]any)
		if !ok {
			break
		}
		if vary(random, spec) == 0 {
			continue
		}
		if _, err := w.Put(edited); err != nil {
			t.Fatal(err)
		}
		seen.met(anEdit)
		out = append(out, rollOut(t, "edited", w)...)
	}
	return ref, out
}

// rollOut lets the operator act until nothing changes any more, and returns the states on the way: the one at the beginning,
// the one at the end, and some between them.
func rollOut(t *testing.T, name string, w *dryrun.World) []namedState {
	t.Helper()
	out := []namedState{{name, w.Cluster.Objects()}}
	_ = w.Run(t.Context(), func(dryrun.Step) { // what never comes to rest has states, too
		if len(out) < maxSteps {
			out = append(out, namedState{name + ", on its way", w.Cluster.Objects()})
		}
	})
	return append(out, namedState{name + ", at rest", w.Cluster.Objects()})
}

// vary changes some values of a spec to others of their type, and returns how many.
func vary(random *rand.Rand, spec map[string]any) int {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		before := spec[name]
		switch value := before.(type) {
		case map[string]any:
			n += vary(random, value)
			continue
		case bool:
			spec[name] = random.IntN(2) == 0
		case int64:
			spec[name] = value + random.Int64N(3)
		case string:
			if random.IntN(4) == 0 {
				spec[name] = value + "x"
			}
		case []any:
			// Concat makes nil of empty lists, which no API server sends: a worker would be sent null.
			if random.IntN(4) == 0 && len(value) > 0 {
				spec[name] = slices.Concat(value, value)
			}
			n += len(spec[name].([]any)) - len(value)
			continue
		}
		if spec[name] != before {
			n++
		}
	}
	return n
}

// worldOf returns a world with an operator of a package and the objects of a state.
func worldOf(t *testing.T, p *program.Program, s state) *dryrun.World {
	t.Helper()
	w := dryrun.New(configMap, p)
	for _, u := range s {
		if _, err := w.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
