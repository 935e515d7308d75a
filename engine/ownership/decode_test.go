package ownership_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/yaml"
)

func TestAnInventoryThatSaysNothingUsefulIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	const entry = "object: o, apiVersion: v1, kind: ConfigMap, name: a"
	rows := map[string]struct{ reason, text, path, problem string }{
		"a group that is none":             {"it has no objects", `[5]`, "[0]", "not an object"},
		"no component":                     {"nobody knows its order", `[{objects: []}]`, "[0].component", "is missing"},
		"a component twice":                {"one of the two would be overlooked", `[{component: a}, {component: a}]`, "[1].component", `"a" is there twice`},
		"edges that are no list":           {"the order of deletion is lost", `[{component: a, dependsOn: b}]`, "[0].dependsOn", "not a list"},
		"an edge that is no name":          {"the order of deletion is lost", `[{component: a, dependsOn: [5]}]`, "[0].dependsOn[0]", "not a text"},
		"objects that are no list":         {"they would be lost", `[{component: a, objects: {}}]`, "[0].objects", "not a list"},
		"an object that is none":           {"it would be lost", `[{component: a, objects: [x]}]`, "[0].objects[0]", "not an object"},
		"an object without a name":         {"it cannot be found", `[{component: a, objects: [{object: o, apiVersion: v1, kind: Secret}]}]`, "[0].objects[0].name", "is missing"},
		"an empty kind":                    {"such a kind is served nowhere, so that the object would be taken for gone", `[{component: a, objects: [{object: o, apiVersion: v1, kind: "", name: a}]}]`, "[0].objects[0].kind", "is missing"},
		"a version that is none":           {"as before", `[{component: a, objects: [{object: o, apiVersion: a/b/c, kind: Secret, name: a}]}]`, "[0].objects[0].apiVersion", `"a/b/c" is no version of an API`},
		"a group without a version":        {"as before", `[{component: a, objects: [{object: o, apiVersion: apps/, kind: Secret, name: a}]}]`, "[0].objects[0].apiVersion", `"apps/" is no version of an API`},
		"a digest that is a number":        {"it would be written anew", `[{component: a, objects: [{` + entry + `, digest: 5}]}]`, "[0].objects[0].digest", "not a text"},
		"a mark that is a text":            {"an orphan is not deleted", `[{component: a, objects: [{` + entry + `, orphan: "no"}]}]`, "[0].objects[0].orphan", "neither true nor false"},
		"a namespace and none":             {"it is in one of two places", `[{component: a, objects: [{` + entry + `, namespace: there, clusterScoped: true}]}]`, "[0].objects[0].namespace", "clusterScoped"},
		"a component that is no name":      {"nobody can ask for it, and it is not to be put into messages", `[{component: /}]`, "[0].component", `"/" is no name`},
		"a component that is a book":       {"it is said in messages", `[{component: ` + strings.Repeat("a", 300) + `}]`, "[0].component", "longer than 253"},
		"a component that is after itself": {"it would wait for itself", `[{component: a, dependsOn: [b, a]}]`, "[0].dependsOn[1]", "the component itself"},
		"an edge to what is no name":       {"as before", `[{component: a, dependsOn: [""]}]`, "[0].dependsOn[0]", "is missing"},
		"a name that is a path":            {"such an object can never be read", `[{component: a, objects: [{object: o, apiVersion: v1, kind: Secret, name: ../a}]}]`, "[0].objects[0].name", "may not contain '/'"},
		"a namespace that is a path":       {"as before", `[{component: a, objects: [{` + entry + `, namespace: ..}]}]`, "[0].objects[0].namespace", "may not be '..'"},
		"a name that moves the cursor":     {"it is said in messages", `[{component: a, objects: [{object: o, apiVersion: v1, kind: Secret, name: "\e[2J"}]}]`, "[0].objects[0].name", "do not print"},
		"a digest that is a book":          {"it is stored again and again", `[{component: a, objects: [{` + entry + `, digest: ` + strings.Repeat("a", 300) + `}]}]`, "[0].objects[0].digest", "longer than 128"},
		"last words that are a book":       {"a package would see them", `[{component: a, objects: [{` + entry + `, last: '{"a": "` + strings.Repeat("a", 600) + `"}'}]}]`, "[0].objects[0].last", "longer than 512"},
		"last words that are a tree":       {"as before", `[{component: a, objects: [{` + entry + `, last: '{"a": {}}'}]}]`, "[0].objects[0].last", "more than plain fields"},
		"conditions that say much":         {"as before", `[{component: a, objects: [{` + entry + `, last: '{"conditions": [{"message": "x"}]}'}]}]`, "[0].objects[0].last", "conditions of another form"},
		"a condition that is null":         {"as before", `[{component: a, objects: [{` + entry + `, last: '{"conditions": [null]}'}]}]`, "[0].objects[0].last", "conditions of another form"},
		"a condition with a null":          {"as before", `[{component: a, objects: [{` + entry + `, last: '{"conditions": [{"type": null}]}'}]}]`, "[0].objects[0].last", "conditions of another form"},
		"a field that is no name":          {"it is said in messages", `[{"\e[2J": true}]`, `[0]."\x1b[2J"`, "later version"},
		"an ending that is none":           {"what it means is not known", `[{component: a, objects: [{` + entry + `, ended: Perhaps}]}]`, "[0].objects[0].ended", "later version"},
		"last words that are no object":    {"a package would see them", `[{component: a, objects: [{` + entry + `, last: "[1]"}]}]`, "[0].objects[0].last", "not the JSON of an object"},
		"a field of a later version":       {"what it means is not known, and it would be lost with the next write", `[{component: a, finally: true}]`, "[0].finally", "later version"},
		"a field of a later version below": {"as before", `[{component: a, objects: [{` + entry + `, guard: x}]}]`, "[0].objects[0].guard", "later version"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ownership.Decode(listOf(t, row.text))
			wrong, ok := errors.AsType[*ownership.UnreadableError](err)
			if !ok {
				t.Fatalf("%s: got %v and %v, want it to be unreadable", row.reason, got, err)
			}
			if wrong.Path != row.path || !strings.Contains(wrong.Error(), row.problem) {
				t.Errorf("%s: got %q: %v, want %q: %s", row.reason, wrong.Path, wrong, row.path, row.problem)
			}
		})
	}
}

// The engine writes last words of up to that length, and must be able to read them.
func TestLastWordsHaveSoManyBytesAtMost(t *testing.T) {
	t.Parallel()
	const empty = `{"a":""}`
	for size, readable := range map[int]bool{511: true, 512: true, 513: false} {
		last := strings.Replace(empty, `""`, `"`+strings.Repeat("x", size-len(empty))+`"`, 1)
		inv := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "n", Last: last}}}}
		if _, err := ownership.Decode(inv.Encode()); (err == nil) != readable {
			t.Errorf("%d bytes: %v, want them to be readable: %t", len(last), err, readable)
		}
	}
}

func TestAnInventoryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := ownership.Inventory{
		{Component: "config", Objects: []ownership.Entry{
			{Object: "role", APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "r", ClusterScoped: true, Digest: "d", UIDPrefix: "u", Orphan: true},
			{Object: "job", APIVersion: "batch/v1", Kind: "Job", Name: "j", Digest: "d", Content: "c", Ended: ownership.Succeeded, Last: `{"succeeded":1}`},
			{Object: "far", APIVersion: "v1", Kind: "ConfigMap", Namespace: "elsewhere", Name: "c"},
		}},
		{Component: "web", DependsOn: []string{"config"}, Objects: []ownership.Entry{{Object: "here", APIVersion: "v1", Kind: "ConfigMap", Name: "c"}}},
	}
	for i := range reflect.TypeFor[ownership.Entry]().NumField() {
		set := func(e ownership.Entry) bool { return !reflect.ValueOf(e).Field(i).IsZero() }
		if !slices.ContainsFunc(want[0].Objects, set) {
			t.Errorf("field %s of an entry is not tested", reflect.TypeFor[ownership.Entry]().Field(i).Name)
		}
	}
	got, err := ownership.Decode(want.Encode())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if none := (ownership.Inventory{}).Encode(); none == nil || len(none) != 0 {
		t.Errorf("an empty inventory is an empty list, and not %#v: one that is missing was lost", none)
	}
}

// What a resource has in its status was written by any version of the engine: a field with another name would be lost, although what is
// written now is read again.
func TestAnInventoryIsStoredInThisForm(t *testing.T) {
	t.Parallel()
	stored := ownership.Inventory{
		{Component: "config", Objects: []ownership.Entry{
			{Object: "role", APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "r", ClusterScoped: true, Digest: "d", UIDPrefix: "u", Orphan: true},
			{Object: "job", APIVersion: "batch/v1", Kind: "Job", Name: "j", Content: "c", Ended: ownership.Succeeded, Last: `{"succeeded":1}`},
			{Object: "far", APIVersion: "v1", Kind: "ConfigMap", Namespace: "elsewhere", Name: "c", Ended: ownership.Failed},
		}},
		{Component: "web", DependsOn: []string{"config"}},
	}
	const text = `
- component: config
  objects:
  - {object: role, apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: r, clusterScoped: true, digest: d, uid: u, orphan: true}
  - {object: job, apiVersion: batch/v1, kind: Job, name: j, content: c, ended: Succeeded, last: '{"succeeded":1}'}
  - {object: far, apiVersion: v1, kind: ConfigMap, namespace: elsewhere, name: c, ended: Failed}
- component: web
  dependsOn: [config]
`
	if diff := cmp.Diff(listOf(t, text), stored.Encode()); diff != "" {
		t.Errorf("what is written (-want +got):\n%s", diff)
	}
	got, err := ownership.Decode(listOf(t, text))
	if diff := cmp.Diff(stored, got); diff != "" || err != nil {
		t.Errorf("what is read (-want +got):\n%s%v", diff, err)
	}
}

// listOf returns the list that a text is.
func listOf(t *testing.T, text string) []any {
	t.Helper()
	var out []any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
