package patch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// deployment, secret and gadget are the rendered objects.
const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: web, image: "web:1", args: [-v], ports: [{containerPort: 80}]}
      - {name: log, image: "log:1"}
`
	secret = `
apiVersion: v1
kind: Secret
metadata: {name: shop}
data: {key: dG9w}
`
	gadget = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: shop}
spec: {size: 9007199254740993, parts: [a, b], mode: {fast: true, safe: true}}
`
	role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop}
`
)

func objectOf(t *testing.T, name, manifest string) program.Object {
	t.Helper()
	u := inline.Object(t, manifest)
	return program.Object{
		Name: name, Manifest: u.Object,
		Identity: object.Ref{GroupVersionKind: u.GroupVersionKind(), Name: u.GetName()},
	}
}

// rendered is a rendering: two components, one that should not exist, and a hook.
func rendered(t *testing.T) []program.Component {
	t.Helper()
	open := objectOf(t, "open", secret)
	open.Patchable = map[string]bool{"data": true}
	yes, no := program.WhenResult{Verdict: program.True}, program.WhenResult{Verdict: program.False}
	return []program.Component{
		{Name: "web", When: yes, Objects: []program.Object{objectOf(t, "deployment", deployment), objectOf(t, "secret", secret)}},
		{Name: "extra", When: yes, Missing: []string{"live.web"}, Objects: []program.Object{
			objectOf(t, "gadget", gadget), objectOf(t, "role", role), {Name: "later"},
		}},
		{Name: "off", When: no, Objects: []program.Object{objectOf(t, "deployment", deployment)}},
		{Name: "hooks.afterDeploy.note", When: yes, Objects: []program.Object{objectOf(t, "job", gadget), open}},
	}
}

// newPatch reads a patch of a name from its order and changes as they are written.
func newPatch(t *testing.T, name string, order int, changes string) patch.Patch {
	t.Helper()
	return patch.Parse(newPatchObject(t, name, order, changes))
}

func newPatchObject(t *testing.T, name string, order int, changes string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": "my"},
		"order":   int64(order),
		"patches": inline.Object(t, "patches: "+changes).Object["patches"],
	}}}
	u.SetGroupVersionKind(patch.Kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetGeneration(1)
	return u
}

// apply applies patches and returns the changed components and the reports.
func apply(t *testing.T, patches ...patch.Patch) ([]program.Component, []patch.Report) {
	t.Helper()
	before := rendered(t)
	after, reports := patch.Apply(before, patches, func(o program.Object) (bool, error) { return o.Identity.Kind != "ClusterRole", nil })
	if diff := cmp.Diff(rendered(t), before); diff != "" {
		t.Errorf("the rendering itself was changed, which others share (-want +got):\n%s", diff)
	}
	return after, reports
}

// at returns the value at an address and a path of field names and list indices.
func at(components []program.Component, address string, path ...any) any {
	for _, c := range components {
		for _, o := range c.Objects {
			if c.Name+"."+o.Name != address {
				continue
			}
			var v any = o.Manifest
			for _, step := range path {
				switch step := step.(type) {
				case string:
					m, _ := v.(map[string]any)
					v = m[step]
				case int:
					l, _ := v.([]any)
					if step >= len(l) {
						return nil
					}
					v = l[step]
				}
			}
			return v
		}
	}
	return nil
}

func TestAPatchChangesWhatIsRendered(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		changes string
		address string
		path    []any
		want    any
	}{
		"strategic merge of a scalar": {
			reason:  "a field is replaced, and stays an integer",
			changes: `[{address: web.deployment, strategicMerge: {spec: {replicas: 5}}}]`,
			address: "web.deployment", path: []any{"spec", "replicas"}, want: int64(5),
		},
		"strategic merge of a list by its key": {
			reason:  "containers are merged by name, as kubectl does",
			changes: `[{address: web.deployment, strategicMerge: {spec: {template: {spec: {containers: [{name: log, image: "log:2"}]}}}}}]`,
			address: "web.deployment", path: []any{"spec", "template", "spec", "containers"},
			want: []any{
				map[string]any{"name": "web", "image": "web:1", "args": []any{"-v"}, "ports": []any{map[string]any{"containerPort": int64(80)}}},
				map[string]any{"name": "log", "image": "log:2"},
			},
		},
		"strategic merge by a key that is a number": {
			reason:  "ports are merged by containerPort: numbers of JSON and of Go have to be equal",
			changes: `[{address: web.deployment, strategicMerge: {spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: http}]}]}}}}}]`,
			address: "web.deployment", path: []any{"spec", "template", "spec", "containers", 0, "ports"},
			want: []any{map[string]any{"containerPort": int64(80), "name": "http"}},
		},
		"strategic merge with a directive": {
			reason:  "$patch: delete takes an item out of a list",
			changes: `[{address: web.deployment, strategicMerge: {spec: {template: {spec: {containers: [{name: log, $patch: delete}]}}}}}]`,
			address: "web.deployment", path: []any{"spec", "template", "spec", "containers", 1}, want: nil,
		},
		"strategic merge with null": {
			reason:  "null removes a field",
			changes: `[{address: web.deployment, strategicMerge: {metadata: {labels: {app: null}}}}]`,
			address: "web.deployment", path: []any{"metadata", "labels", "app"}, want: nil,
		},
		"merge of another kind": {
			reason:  "nobody says how its lists merge, so they are replaced",
			changes: `[{address: extra.gadget, strategicMerge: {spec: {parts: [c], mode: {fast: null}}}}]`,
			address: "extra.gadget", path: []any{"spec"},
			want: map[string]any{"size": int64(9007199254740993), "parts": []any{"c"}, "mode": map[string]any{"safe": true}},
		},
		"operations": {
			reason:  "each sees what the one before has done",
			changes: `[{address: web.deployment, json6902: [{op: add, path: /spec/paused, value: true}, {op: test, path: /spec/paused, value: true}, {op: remove, path: /spec/replicas}]}]`,
			address: "web.deployment", path: []any{"spec", "paused"}, want: true,
		},
		"operations on another kind": {
			reason:  "a large integer keeps its digits",
			changes: `[{address: extra.gadget, json6902: [{op: add, path: /spec/parts/0, value: z}, {op: copy, from: /spec/size, path: /spec/room}]}]`,
			address: "extra.gadget", path: []any{"spec", "room"}, want: int64(9007199254740993),
		},
		"a hook": {
			reason:  "its component is its phase and name",
			changes: `[{address: hooks.afterDeploy.note.job, strategicMerge: {spec: {size: 1}}}]`,
			address: "hooks.afterDeploy.note.job", path: []any{"spec", "size"}, want: int64(1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, reports := apply(t, newPatch(t, "p", 0, tc.changes))
			if len(reports) != 1 || len(reports[0].Unmatched) > 0 || len(reports[0].Applied) != 1 {
				t.Fatalf("%s: reports are %+v", tc.reason, reports)
			}
			if diff := cmp.Diff(tc.want, at(after, tc.address, tc.path...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAPatchThatDoesNotFitIsReportedAndStopsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  string
		want    patch.Reason
		message []string
		hidden  string
	}{
		"unknown component": {
			reason: "whoever misspells is told what there is",
			change: `{address: wbe.deployment, strategicMerge: {spec: {}}}`,
			want:   patch.NoSuchObject, message: []string{"there is no such component", "web, extra, off, hooks.afterDeploy.note"},
		},
		"unknown object": {
			reason: "the same for objects",
			change: `{address: web.deploy, strategicMerge: {spec: {}}}`,
			want:   patch.NoSuchObject, message: []string{"component web has no object deploy", "deployment, secret"},
		},
		"component that is switched off": {
			reason: "what should not exist cannot be changed",
			change: `{address: off.deployment, strategicMerge: {spec: {replicas: 1}}}`,
			want:   patch.NoSuchObject, message: []string{"when is false"},
		},
		"object that is not rendered yet": {
			reason: "it says what the component waits for",
			change: `{address: extra.later, strategicMerge: {spec: {}}}`,
			want:   patch.Pending, message: []string{"live.web"},
		},
		"object out of reach": {
			reason: "a patch must not reach beyond its namespace",
			change: `{address: extra.role, strategicMerge: {rules: []}}`,
			want:   patch.Invalid, message: []string{"ClusterRole shop", "namespace default"},
		},
		"another name": {
			reason: "the inventory knows objects by their names",
			change: `{address: web.deployment, strategicMerge: {metadata: {name: other}}}`,
			want:   patch.Invalid, message: []string{"metadata.name"},
		},
		"another namespace": {
			reason: "also one that was not there",
			change: `{address: web.deployment, json6902: [{op: add, path: /metadata/namespace, value: kube-system}]}`,
			want:   patch.Invalid, message: []string{"metadata.namespace"},
		},
		"another kind": {
			reason: "it would be another object",
			change: `{address: extra.gadget, strategicMerge: {kind: Widget}}`,
			want:   patch.Invalid, message: []string{"must not change kind"},
		},
		"another owner": {
			reason: "garbage collection goes by owners",
			change: `{address: web.deployment, json6902: [{op: add, path: /metadata/ownerReferences, value: []}]}`,
			want:   patch.Invalid, message: []string{"metadata.ownerReferences"},
		},
		"field that the type does not have": {
			reason: "a slip must not become a failure of the component",
			change: `{address: web.deployment, json6902: [{op: add, path: /spec/replica, value: 1}]}`,
			want:   patch.Invalid, message: []string{"not a valid Deployment", "spec.replica"},
		},
		"value of a wrong type": {
			reason: "the same",
			change: `{address: web.deployment, strategicMerge: {spec: {replicas: many}}}`,
			want:   patch.Invalid, message: []string{"not a valid Deployment"},
		},
		"list item without its key": {
			reason: "what it is about cannot be told",
			change: `{address: web.deployment, strategicMerge: {spec: {template: {spec: {containers: [{image: "x"}]}}}}}`,
			want:   patch.Invalid, message: []string{"merge key"},
		},
		"directive for another kind": {
			reason: "it would become a field of the object",
			change: `{address: extra.gadget, strategicMerge: {spec: {$patch: replace}}}`,
			want:   patch.Invalid, message: []string{"$patch"},
		},
		"path that is not there": {
			reason: "the package renders something else now",
			change: `{address: web.deployment, json6902: [{op: replace, path: /spec/strategy/type, value: Recreate}]}`,
			want:   patch.Conflict, message: []string{"/spec/strategy/type"},
		},
		"test that fails": {
			reason: "that is what the operation is for",
			change: `{address: web.deployment, json6902: [{op: test, path: /spec/replicas, value: 4}]}`,
			want:   patch.Conflict, message: []string{"/spec/replicas"},
		},
		"operation without a value": {
			reason: "null cannot be meant: the API server drops it",
			change: `{address: web.deployment, json6902: [{op: add, path: /spec/replicas}]}`,
			want:   patch.Invalid, message: []string{"json6902[0]", "needs a value"},
		},
		"copies without an end": {
			reason: "a small patch must not fill the memory",
			change: `{address: extra.gadget, json6902: [` + copies(40) + `]}`,
			want:   patch.Conflict, message: []string{"accumulated"},
		},
		"Secret": {
			reason: "whether a guess is right must not be told",
			change: `{address: web.secret, json6902: [{op: test, path: /data/key, value: c2VjcmV0}]}`,
			want:   patch.NotPatchable, message: []string{"a patch must not change a Secret"}, hidden: "c2VjcmV0",
		},
		"Secret that is open": {
			reason: "a message must not quote what is in it",
			change: `{address: hooks.afterDeploy.note.open, json6902: [{op: add, path: /data/key/more, value: c2VjcmV0}]}`,
			want:   patch.Conflict, message: []string{"withheld"}, hidden: "c2VjcmV0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bystander := newPatch(t, "bystander", 1, `[{address: web.deployment, json6902: [{op: replace, path: /spec/replicas, value: 7}]}]`)
			after, reports := apply(t, newPatch(t, "p", 0, `[`+tc.change+`, {address: hooks.afterDeploy.note.job, strategicMerge: {spec: {size: 2}}}]`), bystander)
			if len(reports) != 2 || len(reports[0].Unmatched) != 1 {
				t.Fatalf("%s: reports are %+v", tc.reason, reports)
			}
			miss := reports[0].Unmatched[0]
			expectMiss(t, tc.reason, miss, tc.want, tc.message...)
			if tc.hidden != "" && strings.Contains(miss.Message, tc.hidden) {
				t.Errorf("%s: %q", tc.reason, miss.Message)
			}
			if got := at(after, "hooks.afterDeploy.note.job", "spec", "size"); got != int64(2) {
				t.Errorf("the patch's other change was not made: size is %v", got)
			}
			if got := at(after, "web.deployment", "spec", "replicas"); got != int64(7) {
				t.Errorf("the other patch was not applied: replicas are %v", got)
			}
		})
	}
}

// expectMiss compares the reason of a change that was left out, and parts of the
// message.
func expectMiss(t *testing.T, reason string, got patch.UnmatchedChange, want patch.Reason, parts ...string) {
	t.Helper()
	if got.Reason != want {
		t.Errorf("%s: reason is %s, want %s: %s", reason, got.Reason, want, got.Message)
	}
	for _, part := range parts {
		if !strings.Contains(got.Message, part) {
			t.Errorf("%s: message %q does not say %q", reason, got.Message, part)
		}
	}
}

// copies returns operations each of which doubles the spec.
func copies(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{op: copy, from: /spec, path: /spec/x%d}`, i)
	}
	return strings.Join(all, ", ")
}

func TestPatchesAreAppliedInTheirOrder(t *testing.T) {
	made := func(name string, order int, age time.Duration) patch.Patch {
		p := newPatch(t, name, order, `[{address: web.deployment, json6902: [{op: add, path: /metadata/labels/last, value: `+name+`}]}]`)
		p.Created = time.Unix(1000, 0).Add(-age)
		return p
	}
	for name, tc := range map[string]struct {
		reason  string
		patches []patch.Patch
		want    []string
	}{
		"by order": {
			"lower numbers first, also negative ones",
			[]patch.Patch{made("c", 10, 0), made("a", 0, 0), made("b", -1, 0)},
			[]string{"b", "a", "c"},
		},
		"by age": {
			"of the same order the older one is first",
			[]patch.Patch{made("a", 0, time.Second), made("b", 0, time.Minute)},
			[]string{"b", "a"},
		},
		"by name": {
			"of the same second the names decide, whatever order the list has",
			[]patch.Patch{made("b", 0, 0), made("a", 0, 0)},
			[]string{"a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, reports := apply(t, tc.patches...)
			var got []string
			for _, r := range reports {
				got = append(got, r.Patch.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if last := at(after, "web.deployment", "metadata", "labels", "last"); last != tc.want[len(tc.want)-1] {
				t.Errorf("%s: the last word has %v", tc.reason, last)
			}
		})
	}
}

func TestParseSaysWhatCannotBeApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, changes, want string
	}{
		"both":      {"which is meant?", `[{address: a.b, strategicMerge: {}, json6902: []}]`, "exactly one"},
		"neither":   {"nothing is meant", `[{address: a.b}]`, "exactly one"},
		"twice":     {"the order of two would be hidden", `[{address: a.b, strategicMerge: {}}, {address: a.b, strategicMerge: {}}]`, "two changes"},
		"not a map": {"the API server would not have taken it", `[{address: a.b, strategicMerge: 1}]`, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatch(t, "p", 0, tc.changes)
			if !strings.Contains(p.Invalid, tc.want) {
				t.Errorf("%s: Invalid is %q, want %q", tc.reason, p.Invalid, tc.want)
			}
			after, reports := apply(t, p)
			if len(reports[0].Unmatched) != 1 || reports[0].Unmatched[0].Reason != patch.Invalid {
				t.Errorf("%s: reported as %+v", tc.reason, reports[0])
			}
			if diff := cmp.Diff(rendered(t), after); diff != "" {
				t.Errorf("%s: something was changed (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestApplyIsPure(t *testing.T) {
	p := newPatch(t, "p", 0, `[{address: web.deployment, strategicMerge: {spec: {template: {spec: {containers: [{name: log, $patch: delete}]}}}}}]`)
	want := runtime.DeepCopyJSONValue(p.Changes[0].StrategicMerge)
	first, _ := apply(t, p)
	second, _ := apply(t, p)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same patch makes something else the second time:\n%s", diff)
	}
	if diff := cmp.Diff(want, any(p.Changes[0].StrategicMerge)); diff != "" {
		t.Errorf("the patch itself was changed, which the cache shares:\n%s", diff)
	}
}

func TestOneTargetInWhateverVersion(t *testing.T) {
	p := newPatch(t, "p", 0, `[{address: a.b, strategicMerge: {}}]`)
	kind := p.Target.GroupKind
	if !p.Targets(kind, "my") || p.Targets(kind, "mine") {
		t.Errorf("it is about %v", p.Target)
	}
	if kind.Kind = "Store"; p.Targets(kind, "my") {
		t.Error("it is about another kind")
	}
	if !slices.Equal([]string{p.Target.Group, p.Target.Kind}, []string{"example.com", "Shop"}) {
		t.Errorf("the target is %v", p.Target)
	}
}
