package eval

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

// A disturbance is what others do to a cluster between two reconciles.
type disturbance struct {
	name string
	// do reports false if it can do nothing.
	do func(scene) bool
}

// A scene is a cluster in which others do something.
type scene struct {
	t        *testing.T
	random   *rand.Rand
	w        *dryrun.World
	program  *program.Program
	resource cluster.Ref
	// owned is one of the objects that the resource owns, or nil.
	owned *unstructured.Unstructured
}

// put writes an object as another controller or a person does, and reports whether the cluster accepts that.
func (s scene) put(u *unstructured.Unstructured) bool {
	_, err := s.w.Cluster.Put("other", u)
	return err == nil
}

var disturbances = []disturbance{
	{"a field of an object was changed", changeField},
	{"an object was deleted", deleteObject},
	{"an object has another owner", giveAway},
	{"the labels of an object were removed", stripLabels},
	{"the marks of an object were removed", stripMarks},
	{"the status of the resource was removed", dropStatus},
	{"an object has a Patch", patchObject},
}

// configurations are disturbances for the few packages that have a configuration: each comes at each state.
var configurations = []disturbance{
	{"the operator has another configuration", configure},
	{"the resource has a configuration of its own", annotate},
	{"both have a configuration", func(s scene) bool { return configure(s) && annotate(s) }},
}

// disturb returns the states after one of the disturbances, the one whose turn it is or the next that can do
// something, and after each of the configurations that can.
func disturb(t *testing.T, random *rand.Rand, turn int, seen coverage, p *program.Program, ref cluster.Ref, s namedState) []namedState {
	t.Helper()
	var out []namedState
	try := func(d disturbance) bool {
		w := worldOf(t, p, s.state)
		owned := slices.DeleteFunc(w.Cluster.Objects(), func(u *unstructured.Unstructured) bool { return !isOwned(u, w.Get(ref)) })
		var object *unstructured.Unstructured
		if len(owned) > 0 {
			object = owned[random.IntN(len(owned))]
		}
		if !d.do(scene{t, random, w, p, ref, object}) {
			return false
		}
		seen.met(d.name)
		out = append(out, namedState{s.name + ", where " + d.name, w.Cluster.Objects()})
		return true
	}
	for i := range disturbances {
		if try(disturbances[(turn+i)%len(disturbances)]) {
			break
		}
	}
	for _, d := range configurations {
		try(d)
	}
	return out
}

// isOwned reports whether an object says by its marks or its reference that it belongs to a resource.
func isOwned(u, resource *unstructured.Unstructured) bool {
	if resource == nil {
		return false
	}
	refers := slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == resource.GetUID() })
	return refers || u.GetAnnotations()[ownership.OwnerUIDAnnotation] == string(resource.GetUID())
}

func changeField(s scene) bool {
	if s.owned == nil {
		return false
	}
	var fields []func()
	for _, name := range slices.Sorted(maps.Keys(s.owned.Object)) {
		if part, ok := s.owned.Object[name].(map[string]any); ok && name != "metadata" && name != "status" {
			fields = append(fields, fieldsOf(part)...)
		}
	}
	if len(fields) == 0 {
		return false
	}
	fields[s.random.IntN(len(fields))]()
	return s.put(s.owned)
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

func deleteObject(s scene) bool {
	return s.owned != nil && s.w.Delete(cluster.RefOf(s.owned)) == nil
}

func giveAway(s scene) bool {
	if s.owned == nil {
		return false
	}
	if s.random.IntN(2) == 0 {
		removeMarks(s.owned)
	}
	s.owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Other", Name: "other", UID: "other", Controller: new(true)}})
	return s.put(s.owned)
}

func stripLabels(s scene) bool {
	if s.owned == nil {
		return false
	}
	s.owned.SetLabels(nil)
	return s.put(s.owned)
}

func stripMarks(s scene) bool {
	if s.owned == nil {
		return false
	}
	removeMarks(s.owned)
	if s.random.IntN(2) == 0 {
		s.owned.SetOwnerReferences(nil)
	}
	return s.put(s.owned)
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

func dropStatus(s scene) bool {
	u := s.w.Get(s.resource)
	if u == nil || u.Object["status"] == nil {
		return false
	}
	delete(u.Object, "status")
	return s.put(u)
}

// configMap is where the configuration of operators is, with the name that render gives it.
var configMap = types.NamespacedName{Namespace: "operetta-render", Name: "config"}

// configure gives the operator a configuration: every field with another value than its default, or one that the package
// does not have.
func configure(s scene) bool {
	values, ok := s.configuration()
	if !ok {
		return false
	}
	if s.random.IntN(4) == 0 {
		values = map[string]any{"unknown": true}
	}
	_, err := s.w.Put(&unstructured.Unstructured{Object: map[string]any{ // with its namespace
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": configMap.Namespace, "name": configMap.Name},
		"data":     map[string]any{s.program.Name() + ".yaml": jsonOf(s.t, values)},
	}})
	return err == nil
}

// annotate gives the resource a configuration, of which the package may lock fields.
func annotate(s scene) bool {
	values, ok := s.configuration()
	u := s.w.Get(s.resource)
	if !ok || u == nil {
		return false
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[reconcile.AnnotationConfig] = jsonOf(s.t, values)
	u.SetAnnotations(annotations)
	return s.put(u)
}

// configuration returns other values than the defaults of the package's configuration. It reports false if it has none.
func (s scene) configuration() (map[string]any, bool) {
	schema := s.program.Config().Schema()
	if !schema.Exists() {
		return nil, false
	}
	text, err := schema.MarshalJSON()
	if err != nil {
		return nil, false // a field has no default
	}
	values := map[string]any{}
	if err := json.Unmarshal(text, &values); err != nil { // of apimachinery, which makes int64 of whole numbers
		s.t.Fatal(err)
	}
	return values, vary(s.random, values) > 0
}

// configOf returns what a ConfigMap configures.
func configOf(t *testing.T, p *program.Program, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	text, _, _ := unstructured.NestedString(u.Object, "data", p.Name()+".yaml")
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// patchObject makes a Patch of an object that the resource owns.
func patchObject(s scene) bool {
	if s.owned == nil || s.resource.Namespace == "" {
		return false
	}
	decided, err := s.w.Preview(s.t.Context(), s.resource)
	if err != nil {
		s.t.Fatal(err)
	}
	address := addressOf(decided, cluster.RefOf(s.owned))
	if address == "" {
		return false
	}
	apiVersion, kind := s.resource.GroupVersionKind.ToAPIVersionAndKind()
	return s.put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operetta.dev/v1alpha1", "kind": "Patch",
		"metadata": map[string]any{"namespace": s.resource.Namespace, "name": "hotfix"},
		"spec": map[string]any{
			"target": map[string]any{"apiVersion": apiVersion, "kind": kind, "name": s.resource.Name},
			"patches": []any{map[string]any{
				"address":        address,
				"strategicMerge": map[string]any{"metadata": map[string]any{"labels": map[string]any{"hotfix": "yes"}}},
			}},
		},
	}})
}

// addressOf returns by which component and name an object is rendered, or "".
func addressOf(decided reconcile.Preview, ref cluster.Ref) string {
	for _, c := range decided.Components {
		for _, o := range c.Objects {
			if o.Ref().Identity() == ref.Identity() {
				return o.Component + "." + o.Object
			}
		}
	}
	return ""
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
