package eval

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
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
	w := dryrun.New(types.NamespacedName{}, p)
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

// A disturbance is what others do to a cluster between two reconciles.
type disturbance struct {
	name string
	// do is given one of the objects that the resource owns. It reports false if it can do nothing.
	do func(random *rand.Rand, w *dryrun.World, resource cluster.Ref, owned *unstructured.Unstructured) bool
}

var disturbances = []disturbance{
	{"a field of an object was changed", changeField},
	{"an object was deleted", deleteObject},
	{"an object has another owner", giveAway},
	{"the labels of an object were removed", stripLabels},
	{"the marks of an object were removed", stripMarks},
	{"the status of the resource was removed", dropStatus},
}

// disturb returns a state after one of the disturbances: the one whose turn it is, or the next that can do
// something. It reports false if none can.
func disturb(t *testing.T, random *rand.Rand, turn int, seen coverage, p *program.Program, ref cluster.Ref, s namedState) (namedState, bool) {
	t.Helper()
	for i := range disturbances {
		d := disturbances[(turn+i)%len(disturbances)]
		w := worldOf(t, p, s.state)
		owned := slices.DeleteFunc(w.Cluster.Objects(), func(u *unstructured.Unstructured) bool { return !isOwned(u, w.Get(ref)) })
		var object *unstructured.Unstructured
		if len(owned) > 0 {
			object = owned[random.IntN(len(owned))]
		}
		if d.do(random, w, ref, object) {
			seen.met(d.name)
			return namedState{s.name + ", where " + d.name, w.Cluster.Objects()}, true
		}
	}
	return s, false
}

// isOwned reports whether an object says by its marks or its reference that it belongs to a resource.
func isOwned(u, resource *unstructured.Unstructured) bool {
	if resource == nil {
		return false
	}
	refers := slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == resource.GetUID() })
	return refers || u.GetAnnotations()[ownership.OwnerUIDAnnotation] == string(resource.GetUID())
}

// putAsOther writes an object as another controller does, and reports whether the cluster accepts that.
func putAsOther(w *dryrun.World, u *unstructured.Unstructured) bool {
	_, err := w.Cluster.Put("other", u)
	return err == nil
}

func changeField(random *rand.Rand, w *dryrun.World, _ cluster.Ref, owned *unstructured.Unstructured) bool {
	if owned == nil {
		return false
	}
	var fields []func()
	for _, name := range slices.Sorted(maps.Keys(owned.Object)) {
		if part, ok := owned.Object[name].(map[string]any); ok && name != "metadata" && name != "status" {
			fields = append(fields, fieldsOf(part)...)
		}
	}
	if len(fields) == 0 {
		return false
	}
	fields[random.IntN(len(fields))]()
	return putAsOther(w, owned)
}

// fieldsOf returns for each value within a map a function that changes it.
func fieldsOf(at map[string]any) []func() {
	var out []func()
	for _, name := range slices.Sorted(maps.Keys(at)) {
		switch value := at[name].(type) {
		case map[string]any:
			out = append(out, fieldsOf(value)...)
		case []any:
			for _, element := range value {
				if m, ok := element.(map[string]any); ok {
					out = append(out, fieldsOf(m)...)
				}
			}
		case string:
			out = append(out, func() { at[name] = value + "x" })
		case int64:
			out = append(out, func() { at[name] = value + 1 })
		case bool:
			out = append(out, func() { at[name] = !value })
		}
	}
	return out
}

func deleteObject(_ *rand.Rand, w *dryrun.World, _ cluster.Ref, owned *unstructured.Unstructured) bool {
	return owned != nil && w.Delete(cluster.RefOf(owned)) == nil
}

func giveAway(random *rand.Rand, w *dryrun.World, _ cluster.Ref, owned *unstructured.Unstructured) bool {
	if owned == nil {
		return false
	}
	if random.IntN(2) == 0 {
		removeMarks(owned)
	}
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Other", Name: "other", UID: "other", Controller: new(true)}})
	return putAsOther(w, owned)
}

func stripLabels(_ *rand.Rand, w *dryrun.World, _ cluster.Ref, owned *unstructured.Unstructured) bool {
	if owned == nil {
		return false
	}
	owned.SetLabels(nil)
	return putAsOther(w, owned)
}

func stripMarks(random *rand.Rand, w *dryrun.World, _ cluster.Ref, owned *unstructured.Unstructured) bool {
	if owned == nil {
		return false
	}
	removeMarks(owned)
	if random.IntN(2) == 0 {
		owned.SetOwnerReferences(nil)
	}
	return putAsOther(w, owned)
}

// removeMarks removes the labels and annotations of the engine.
func removeMarks(u *unstructured.Unstructured) {
	own := func(name, _ string) bool { return strings.HasPrefix(name, "operetta.dev/") }
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	maps.DeleteFunc(labels, own)
	maps.DeleteFunc(annotations, own)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

func dropStatus(_ *rand.Rand, w *dryrun.World, resource cluster.Ref, _ *unstructured.Unstructured) bool {
	u := w.Get(resource)
	if u == nil || u.Object["status"] == nil {
		return false
	}
	delete(u.Object, "status")
	return putAsOther(w, u)
}

// worldOf returns a world with an operator of a package and the objects of a state.
func worldOf(t *testing.T, p *program.Program, s state) *dryrun.World {
	t.Helper()
	w := dryrun.New(types.NamespacedName{}, p)
	for _, u := range s {
		if _, err := w.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
